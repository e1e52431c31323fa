const { contextBridge, ipcRenderer } = require("electron");
contextBridge.exposeInMainWorld("settings", { get: (name) => ipcRenderer.invoke("settings:get", name) });
