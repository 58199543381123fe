// #region config
const modules = "/node_modules/(?:holdfast|p-timeout)/"; // the ES modules that Jest is to make CommonJS of

module.exports = {
  transform: { [modules]: "./to-commonjs.cjs" },
  transformIgnorePatterns: [`/node_modules/(?!${modules.slice("/node_modules/".length)})`],
};
// #endregion

module.exports.testMatch = ["**/*.test.cjs"];
