// The editors of known chats, from npm, for the test pages.

import { baseKeymap } from "prosemirror-commands";
import { history, redo, undo } from "prosemirror-history";
import { keymap } from "prosemirror-keymap";
import { schema } from "prosemirror-schema-basic";
import { EditorState } from "prosemirror-state";
import { EditorView } from "prosemirror-view";
import { createEmptyHistoryState, registerHistory } from "@lexical/history";
import { registerRichText } from "@lexical/rich-text";
import { $getRoot, createEditor } from "lexical";

window.startProseMirror = (place) => {
  const state = EditorState.create({ schema, plugins: [history(), keymap({ "Mod-z": undo, "Mod-y": redo }), keymap(baseKeymap)] });
  const view = new EditorView(place, { state });
  window.readEditor = () => {
    const lines = [];
    view.state.doc.forEach((node) => lines.push(node.textBetween(0, node.content.size, "\n", "\n")));
    return lines.join("\n");
  };
};

window.startLexical = (place) => {
  place.contentEditable = "true";
  const editor = createEditor({ namespace: "chat", onError: (error) => { throw error; } });
  editor.setRootElement(place);
  registerRichText(editor);
  registerHistory(editor, createEmptyHistoryState(), 300);
  window.readEditor = () => editor.getEditorState().read(() => $getRoot().getChildren().map((node) => node.getTextContent()).join("\n"));
};
