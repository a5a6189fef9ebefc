// Bundles the scripts of the editor into one file, whose first comment has the licences of what it contains.
// Usage: node build.mjs FILE
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const [target] = process.argv.slice(2);
const {
  metafile,
  outputFiles: [script],
} = await build({
  entryPoints: ["src/main.js"],
  bundle: true,
  format: "iife",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
  write: false,
});

const names = Object.keys(metafile.inputs).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
const packagesByLicence = new Map();
for (const name of [...new Set(names)].filter(Boolean).sort()) {
  const { version } = JSON.parse(await readFile(`node_modules/${name}/package.json`));
  const licence = (await readFile(`node_modules/${name}/LICENSE`, "utf8")).trim().replaceAll("*/", "* /");
  packagesByLicence.set(licence, [...(packagesByLicence.get(licence) ?? []), `${name} ${version}`]);
}
const licences = [...packagesByLicence].map(([licence, packages]) => `${packages.join(", ")}:\n\n${licence}\n`);
const head = "/* Built from dashboard/editor by scripts/build-editor. It contains these packages:\n\n";
await writeFile(target, `${head}${licences.join("\n\n")}*/\n${script.text}`);
