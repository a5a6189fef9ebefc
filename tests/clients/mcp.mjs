// Calls tools of an MCP server over stdio and prints what it answers. The argument is a JSON object: `server`, as
// StdioClientTransport takes it, the `mode` in which a version of the protocol is chosen, and `calls` of tools.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const { server, mode, calls } = JSON.parse(process.argv[2]);
const transport = new StdioClientTransport({ ...server, stderr: "pipe" });
let log = "";
transport.stderr.on("data", (chunk) => (log += chunk));
const client = new Client({ name: "platen-test", version: "1" }, { versionNegotiation: { mode } });
// Also what is on standard output and is no message.
const faults = [];
client.onerror = (error) => faults.push(String(error));
await client.connect(transport);
const { name } = client.getServerVersion();
const { tools } = await client.listTools();
const results = [];
for (const call of calls) {
  results.push(await client.callTool(call).catch((error) => ({ refused: error.message })));
}
await client.close();
console.log(JSON.stringify({ name, tools, results, log, faults }));
