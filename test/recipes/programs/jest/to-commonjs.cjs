// #region transform
const { transformSync } = require("esbuild");

exports.process = (source, path) =>
  transformSync(source, { format: "cjs", platform: "node", sourcefile: path, sourcemap: "inline" });
// #endregion
