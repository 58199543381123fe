// #region config
import commonjs from "@rollup/plugin-commonjs"; // for eventemitter3
import { nodeResolve } from "@rollup/plugin-node-resolve";

export default {
  input: "build/portable.js",
  external: ["ioredis"],
  output: { file: "build/without-ioredis.mjs" },
  plugins: [nodeResolve({ preferBuiltins: true }), commonjs()],
};
// #endregion
