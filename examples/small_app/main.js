"use strict";
const { app, BrowserWindow, ipcMain } = require("electron");
const path = require("node:path");
const _ = require("lodash");
const { settings } = require("./lib/settings");

let menu;
function showMenu() {
  menu ??= require("electron").Menu.buildFromTemplate([]);
  return menu;
}

app.whenReady().then(() => {
  const window = new BrowserWindow({ webPreferences: { preload: path.join(__dirname, "preload.js") } });
  ipcMain.handle("settings:get", (_event, name) => _.get(settings.store, name));
  window.loadFile("index.html");
  showMenu();
});
