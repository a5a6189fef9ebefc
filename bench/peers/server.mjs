// A small HTTP server in front of a renderer: POST a job, get a file. The job has the fields of
// Platen's own API, every default filled in, so that all sides are asked for the same.
import { createServer } from "node:http";

/**
 * Serves `render(job) -> bytes` on a free port of 127.0.0.1 until SIGTERM, then runs `close`.
 * Says where on standard output once it is ready.
 */
export function serve(render, close) {
  const server = createServer(async (request, response) => {
    try {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      const file = await render(JSON.parse(Buffer.concat(pieces).toString()));
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
