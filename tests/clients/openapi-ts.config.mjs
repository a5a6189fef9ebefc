// The imports of the client have the extension that Node.js needs.
export default {
  output: { path: "generated", importFileExtension: ".js" },
};
