// An HTTP server for a renderer: it accepts a job by POST and responds with the file. The job has the fields
// of Platen's public API with all defaults filled in, so that all renderers get the same options.
import { createServer } from "node:http";

/**
 * Serves `render(job) -> bytes` on a free port of 127.0.0.1 until SIGTERM, then calls `close`.
 * Prints the address when it is ready.
 */
export function serve(render, close) {
  const server = createServer(async (request, response) => {
    try {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const file = await render(JSON.parse(Buffer.concat(chunks).toString()));
      response.writeHead(200, { "content-length": file.length }).end(file);
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
  process.once("SIGTERM", async () => {
    server.close();
    server.closeAllConnections();
    await close();
    process.exit(0);
  });
}
