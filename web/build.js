// Bundles src/*.js and src/*.css for the pages. What each bundle was made of stands beside it, with hashes and licences.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";

const OUT = "../policyengine/server/pages/static/built";
const SOURCES = ["charts.js", "playground.js"];

const sha256 = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");

const made = await build({
  entryPoints: SOURCES.map((name) => join("src", name)),
  outdir: OUT,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  write: false,
});

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
for (const file of made.outputFiles) writeFileSync(join(OUT, basename(file.path)), file.contents);

// What npm has verified as it was installed: the hashes of the packages' archives.
const installed = JSON.parse(readFileSync("node_modules/.package-lock.json", "utf8")).packages;
const inputs = Object.keys(made.metafile.inputs).sort();
const folders = [...new Set(inputs.map((path) => path.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0]).filter(Boolean))];

const licences = folders.map((folder) => {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (!file) throw new Error(`${folder} comes without the text of its licence`);
  return `${folder.slice("node_modules/".length)} ${installed[folder].version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});
writeFileSync(join(OUT, "LICENSES.txt"), licences.join(`\n${"-".repeat(80)}\n\n`));

const hashed = (names, folder) => Object.fromEntries(names.map((name) => [name, sha256(join(folder, name))]));
const hashes = {
  packages: Object.fromEntries(folders.map((folder) => [folder, installed[folder].integrity])),
  sources: hashed(inputs.filter((path) => !path.startsWith("node_modules/")), "."),
  files: hashed(readdirSync(OUT).sort(), OUT),
};
writeFileSync(join(OUT, "hashes.json"), JSON.stringify(hashes, null, 2) + "\n");
