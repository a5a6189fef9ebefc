// browserless, started as in its own image, on an installed Chromium. browserless looks for the Chromium that
// Playwright downloads, so this script creates a symbolic link to BENCH_CHROMIUM at that path.
import { mkdir, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname } from "node:path";

const { chromium } = createRequire(import.meta.resolve("@browserless.io/browserless"))("playwright-core");
await mkdir(dirname(chromium.executablePath()), { recursive: true });
await symlink(process.env.BENCH_CHROMIUM, chromium.executablePath());

// browserless looks for browsers while its module is loaded, so it is imported after the link exists.
const { Browserless } = await import("@browserless.io/browserless");
const server = new Browserless();
await server.start();
console.log(`listening on http://127.0.0.1:${process.env.PORT}`);
process.once("SIGTERM", async () => {
  await server.stop();
  process.exit(0);
});
