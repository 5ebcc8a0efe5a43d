// Bundles the script and style sheet of the report page into the Python package or, with --tests,
// the tests into build/. Generates the types of the page data from its JSON Schema first.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { compile } from "json-schema-to-typescript";

const here = dirname(fileURLToPath(import.meta.url));
const output = join(here, "..", "python", "wsgiload", "report", "front_end");
const schemaFile = join(here, "page-data.schema.json");

// The compiler only supports the tuple syntax of older drafts: `items` instead of `prefixItems`.
function withOlderTuples(part) {
  if (part === null || typeof part !== "object") return part;
  const { prefixItems, ...rest } = part;
  const converted = Array.isArray(part) ? part : prefixItems ? { ...rest, items: prefixItems } : rest;
  if (Array.isArray(converted)) return converted.map(withOlderTuples);
  return Object.fromEntries(Object.entries(converted).map(([key, value]) => [key, withOlderTuples(value)]));
}

// Every copy of the script must include uPlot's license.
const license = readFileSync(join(here, "node_modules", "uplot", "LICENSE"), "utf-8").trim();
const schema = JSON.parse(readFileSync(schemaFile, "utf-8"));
const types = await compile(withOlderTuples(schema), "PageData", {
  additionalProperties: false,
  bannerComment: "",
  unreachableDefinitions: true, // PageData does not reference LiveFrame.
});
mkdirSync(join(here, "src", "generated"), { recursive: true });
writeFileSync(join(here, "src", "generated", "page-data.ts"), types);

async function buildTests(folder, external) {
  const tests = readdirSync(join(here, folder)).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((name) => join(here, folder, name)),
    outdir: join(here, "build", folder),
    outExtension: { ".js": ".mjs" },
    bundle: true,
    external,
    platform: "node",
    format: "esm",
    target: "node18",
  });
}

if (process.argv.includes("--tests")) {
  await buildTests("test", []);
  await buildTests("browser", ["axe-core", "playwright-core"]);
} else {
  await build({
    entryPoints: { page: join(here, "src", "main.ts") },
    outdir: output,
    bundle: true,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    banner: { js: `/* Contains uPlot. ${license} */` },
    format: "iife",
    target: "es2020",
  });
}
