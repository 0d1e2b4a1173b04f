"""Runs the README from top to bottom, as a reader would: files are written, commands are run, and their output is compared."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from scratch_relay import BINARY, free_port, scratch_environment

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(\S+)(?: file=(\S+))?\n(.*?)^```$", re.M | re.S)


class Readme(unittest.TestCase):
    def test_every_example_runs(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="crosstalk-readme-")
        self.addCleanup(scratch.cleanup)
        self.folder, port = Path(scratch.name), free_port()
        path = [Path(sys.executable).parent, BINARY.parent, os.environ["PATH"]]
        self.environment = {**scratch_environment(self.folder), "PATH": os.pathsep.join(map(str, path))}
        commands = 0
        for kind, name, text in BLOCK.findall(README.read_text()):
            text = text.replace("127.0.0.1:8799", f"127.0.0.1:{port}")
            if name:
                listen = f'listen = "127.0.0.1:{port}"\n' if name == "relay.toml" else ""
                (self.folder / name).write_text(listen + text)
            elif kind == "shell-session":
                for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
                    command, _, output = step.partition("\n")
                    self.run_command(command, output)
                    commands += 1
            else:
                self.assertEqual(kind, "text", "a block is a file, a session, or text that is not run")
        self.assertGreater(commands, 5)

    def run_command(self, command: str, expected: str) -> None:
        if command.endswith("&"):
            process = subprocess.Popen(
                ["sh", "-c", f"exec {command.removesuffix('&')}"], cwd=self.folder, env=self.environment
            )
            self.addCleanup(process.wait)
            self.addCleanup(process.send_signal, signal.SIGTERM)
            return
        done = subprocess.run(
            ["sh", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stderr}")
        pattern = re.escape(expected).replace("…", ".*")
        self.assertRegex(done.stdout, f"^{pattern}$", command)


if __name__ == "__main__":
    unittest.main()
