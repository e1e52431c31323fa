const Store = require("electron-store");
exports.settings = new Store({ name: "settings" });
exports.load = (plugin) => require(plugin);
