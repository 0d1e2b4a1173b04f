// The built folders: the checks of Mozilla, the limits of Safari, and what the extension asks for.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BUILT, TOOLS } from "./tools.mjs";

const manifests = Object.fromEntries(["chromium", "firefox"].map((name) => [name, JSON.parse(readFileSync(join(BUILT, name, "manifest.json"), "utf8"))]));

function* files(folder) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else yield path;
  }
}

test("web-ext lint finds no errors", () => {
  const { stdout, error } = spawnSync(process.execPath, [join(TOOLS, "node_modules/web-ext/bin/web-ext.js"), "lint", "--source-dir", join(BUILT, "firefox"), "--output", "json", "--no-config-discovery"], { encoding: "utf8", env: { ...process.env, NO_UPDATE_NOTIFIER: "1" }, timeout: 180_000 });
  assert.ifError(error);
  const { summary, errors, warnings } = JSON.parse(stdout);
  console.log(`web-ext lint: ${summary.errors} errors, ${summary.warnings} warnings, ${summary.notices} notices`);
  assert.deepEqual(errors, []);
  // The panel of Chromium, which the code uses where it is there.
  const others = warnings.filter(({ code, message }) => code !== "UNSUPPORTED_API" || !message.startsWith("sidePanel."));
  assert.deepEqual(others.map(({ code, message }) => `${code}: ${message}`).filter((line) => !/^KEY_FIREFOX_(ANDROID_)?UNSUPPORTED_BY_MIN_VERSION/.test(line)), []);
});

test("the extension asks for the least, and runs no remote code", () => {
  for (const [name, manifest] of Object.entries(manifests)) {
    const { permissions, host_permissions, content_scripts, web_accessible_resources, externally_connectable } = manifest;
    const own = name === "chromium" ? ["sidePanel"] : [];
    assert.deepEqual(permissions.filter((permission) => !own.includes(permission)), ["activeTab", "scripting", "storage"]);
    assert.deepEqual([host_permissions, content_scripts, web_accessible_resources, externally_connectable], [undefined, undefined, undefined, undefined]);
    const policy = manifest.content_security_policy.extension_pages;
    assert.match(policy, /^default-src 'none'; script-src 'self' 'wasm-unsafe-eval';/);
    assert.equal(/unsafe-inline|'unsafe-eval'|script-src[^;]*http/.test(policy), false);
    for (const path of files(join(BUILT, name))) {
      if (!/\.(js|html)$/.test(path)) continue;
      const text = readFileSync(path, "utf8");
      assert.equal(/\beval\(|new Function\(|\.innerHTML\s*=|insertAdjacentHTML|<script[^>]*src="(?:https?:)?\/\//.test(text), false, path);
    }
  }
});

/** What Apple documents for web extensions of Safari 17; other permissions and keys are ignored with a warning. */
const SAFARI = {
  keys: ["manifest_version", "name", "version", "description", "icons", "permissions", "optional_host_permissions", "content_security_policy", "action", "options_ui", "background"],
  permissions: ["activeTab", "alarms", "clipboardWrite", "contextMenus", "cookies", "declarativeNetRequest", "menus", "nativeMessaging", "scripting", "storage", "tabs", "unlimitedStorage", "webNavigation", "webRequest"],
  /** Keys and permissions of other browsers, which have to be optional in the code. */
  ignored: ["side_panel", "sidePanel", "minimum_chrome_version"],
};

test("the folder for Chromium keeps the documented limits of Safari", () => {
  const { chromium: manifest } = manifests;
  const unknown = Object.keys(manifest).filter((key) => !SAFARI.keys.includes(key) && !SAFARI.ignored.includes(key));
  assert.deepEqual(unknown, []);
  const permissions = manifest.permissions.filter((permission) => !SAFARI.permissions.includes(permission) && !SAFARI.ignored.includes(permission));
  assert.deepEqual(permissions, []);
  assert.equal(manifest.manifest_version, 3);
  // A background page may not be persistent; a service worker never is.
  assert.deepEqual(Object.keys(manifest.background), ["service_worker", "type"]);
  assert.ok(manifest.description.length <= 112, "the longest description of Safari");
  assert.match(manifest.version, /^\d+(\.\d+){0,2}$/);
  for (const size of ["48", "128"]) assert.ok(manifest.icons[size], `an icon of ${size} pixels`);
  for (const [name, path] of [...files(join(BUILT, "chromium"))].filter((file) => file.endsWith(".js")).map((file) => [file, readFileSync(file, "utf8")])) {
    assert.equal(/(?<!\?)\.(sidePanel|sidebarAction)\.(?!open\(|open !==)/.test(path), false, `${name} needs what Safari does not have`);
  }
});
