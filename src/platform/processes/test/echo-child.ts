import { createServer } from 'node:http'
import { channelToParent, isChild } from '../index.ts'

/* A process for kept-process.test.ts: answers what it is asked, and serves its pid on the port it is told. */

type ToChild = { readonly kind: 'begin'; readonly port: number } | { readonly kind: 'end' } | { readonly kind: 'hang' }

if (!isChild()) throw new Error('started by kept-process.test.ts only')
let hangs = false
process.on('SIGTERM', () => undefined)
const channel = channelToParent<object, ToChild>({
  heard(message) {
    if (message.kind === 'hang') hangs = true
    else if (message.kind === 'end') {
      if (!hangs) process.exit(0)
    } else {
      createServer((_, response) => response.setHeader('connection', 'close').end(String(process.pid))).listen(
        message.port,
        '127.0.0.1',
        () => channel.tell({ kind: 'listening', pid: process.pid }),
      )
    }
  },
  asked: (message, bytes) => Promise.resolve({ message, bytes: [...bytes], pid: process.pid }),
  closed: () => process.exit(1),
})
