// browserless as its own image runs it, on a Chromium that is installed already: it looks for the
// one that Playwright would download, so a link to BENCH_CHROMIUM is put there.
import { mkdir, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname } from "node:path";

const { chromium } = createRequire(import.meta.resolve("@browserless.io/browserless"))("playwright-core");
await mkdir(dirname(chromium.executablePath()), { recursive: true });
await symlink(process.env.BENCH_CHROMIUM, chromium.executablePath());

// It looks for browsers while it is loaded.
const { Browserless } = await import("@browserless.io/browserless");
const server = new Browserless();
await server.start();
console.log(`listening on http://127.0.0.1:${process.env.PORT}`);
process.once("SIGTERM", async () => {
  await server.stop();
  process.exit(0);
});
