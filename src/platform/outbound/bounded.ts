import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

const LOOK_EVERY_MS = 100

/** What came in answer to one question is more than the caller keeps. */
export class TooMuchReceivedError extends Error {
  override readonly name = 'TooMuchReceivedError'

  constructor(maxBytes: number) {
    super(`it sends more than the ${maxBytes / 2 ** 20} MiB that an answer has at most`)
  }
}

/** What came cannot be read as what should be there. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError'

  constructor(why = 'what it sends cannot be read', options?: ErrorOptions) {
    super(why, options)
  }
}

/**
 * Ends a connection on which more came since something was last written to it than an answer has: libraries keep what they are sent.
 * Counted below any encryption, and looked at ten times a second, so that a fast peer brings somewhat more.
 */
export function boundReceived(socket: Socket, maxBytes: number): void {
  let [read, written] = [0, 0]
  const timer = setInterval(() => {
    if (socket.bytesWritten !== written) [read, written] = [socket.bytesRead, socket.bytesWritten]
    else if (socket.bytesRead - read > maxBytes) socket.destroy(new TooMuchReceivedError(maxBytes))
  }, LOOK_EVERY_MS).unref()
  socket.once('close', () => clearInterval(timer))
}

/** Of whoever dials in an asynchronous step of `withBoundedSockets`. */
const bounds = new AsyncLocalStorage<number>()
let isListening = false

/** The same for every socket that `net.connect` makes meanwhile, of a library that takes none of ours. */
export function withBoundedSockets<T>(maxBytes: number, work: () => T): T {
  if (!isListening)
    subscribe('net.client.socket', (message) => {
      const bound = bounds.getStore()
      if (bound !== undefined) boundReceived((message as { readonly socket: Socket }).socket, bound)
    })
  isListening = true
  return bounds.run(maxBytes, work)
}

/**
 * Ends a connection on which its reader stumbles. Libraries read in a listener, where an error would end the process.
 * @param refusal looks at each piece before the reader has it; says why that must not
 */
export function containReading(socket: Socket, refusal: (piece: Buffer) => string | undefined = () => undefined): void {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean
  socket.emit = (event: string | symbol, ...args: unknown[]) => {
    if (event !== 'data') return emit(event, ...args)
    const refused = refusal(args[0] as Buffer)
    if (refused !== undefined) {
      socket.destroy(new UnreadableError(refused))
      return true
    }
    try {
      return emit(event, ...args)
    } catch (error) {
      socket.destroy(new UnreadableError(undefined, { cause: error }))
      return true
    }
  }
}
