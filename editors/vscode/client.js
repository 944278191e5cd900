// Starts `policyengine lsp` and connects it to the editor. All knowledge of the language is the server's.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

/** @type {LanguageClient | undefined} */
let client;

/** The command of the settings, with `${workspaceFolder}` replaced; a relative path is taken from the workspace. */
function command() {
  const configured = vscode.workspace.getConfiguration("policyengine").get("path", "policyengine");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const path = configured.replaceAll("${workspaceFolder}", folder);
  return path.startsWith(".") && folder ? `${folder}/${path}` : path;
}

function manifests() {
  return vscode.workspace.getConfiguration("policyengine").get("manifests", false);
}

function documents() {
  return [{ language: "policy" }, ...(manifests() ? [{ language: "yaml", scheme: "file" }] : [])];
}

/** A document that the server reads: YAML alone starts none, unless the setting asks for manifests. */
function isOurs(document) {
  return document.languageId === "policy" || (document.languageId === "yaml" && manifests());
}

async function start() {
  const settings = ["**/*.policy", "**/policyengine.toml", "**/pyproject.toml"];
  const watchers = settings.map((pattern) => vscode.workspace.createFileSystemWatcher(pattern));
  client = new LanguageClient(
    "policyengine",
    "policyengine",
    { command: command(), args: ["lsp"] },
    { documentSelector: documents(), synchronize: { fileEvents: watchers } },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const open = "Open settings";
    const message = `\`${command()} lsp\` does not start: ${error.message ?? error}. ` +
      "Install it with `pip install 'policyengine-scheduler[lsp]'`, or set `policyengine.path`.";
    if ((await vscode.window.showErrorMessage(message, open)) === open) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "policyengine.path");
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

let begun = false;

async function startOnce() {
  if (!begun && vscode.workspace.textDocuments.some(isOurs)) {
    begun = true;
    await start();
  }
}

async function restart() {
  begun = true;
  await stop();
  await start();
}

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("policyengine.restart", restart),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("policyengine.path") || change.affectsConfiguration("policyengine.manifests")) {
        await (begun ? restart() : startOnce());
      }
    }),
    vscode.workspace.onDidOpenTextDocument(startOnce),
  );
  await startOnce();
}

module.exports = { activate, deactivate: stop };
