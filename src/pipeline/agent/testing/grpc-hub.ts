import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js'
import { COLLECTOR_METHOD } from '#wire'
import type { MemoryHub } from './memory-hub.ts'

const buffer = (bytes: Uint8Array) => Buffer.from(bytes)

/** Serves a scripted hub over gRPC in the clear; while it is not `up`, streams end at once. */
export async function serveHub(hub: MemoryHub): Promise<{ readonly port: number } & AsyncDisposable> {
  const server = new Server({ 'grpc.max_receive_message_length': 64 * 2 ** 20 })
  server.addService(
    {
      Connect: {
        path: COLLECTOR_METHOD,
        requestStream: true,
        responseStream: true,
        requestSerialize: buffer,
        requestDeserialize: (bytes: Buffer) => bytes,
        responseSerialize: buffer,
        responseDeserialize: (bytes: Buffer) => bytes,
      },
    },
    { Connect: (call: ServerDuplexStream<Buffer, Uint8Array>) => void serve(hub, call) },
  )
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    )
  })
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.forceShutdown()
    },
  }
}

async function serve(hub: MemoryHub, call: ServerDuplexStream<Buffer, Uint8Array>): Promise<void> {
  try {
    const link = await hub.open(new AbortController().signal)
    call.on('data', (bytes: Buffer) => link.send(bytes))
    const end = () => void link[Symbol.asyncDispose]()
    call.on('end', end)
    call.on('error', end)
    call.on('cancelled', end)
    for await (const message of link.messages) call.write(message)
    call.end()
  } catch {
    call.end() // the script cut it, or is not up: the agent sees a stream that ended
  }
}
