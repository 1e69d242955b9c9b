import type { LookupFunction, TcpNetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect, type SecureContext, type TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'

/** A connection that is not there after so long is given up, ms. */
export const CONNECT_TIMEOUT_MS = 10_000
/** TLS records are at most 16 KiB, and Node hands over one at a time. */
const RECORD_BYTES = 16 * 1024
/** What a reader that does not read may leave lying. */
const MAX_BACKLOG_BYTES = 1024 * 1024

/**
 * Where every connection's bytes arrive. Node fills it and calls back in one go, on one thread, so connections can share
 * it; with a stream's own buffers each record costs an allocation, and a large list mostly collector work.
 */
const landing = Buffer.allocUnsafeSlow(4 * RECORD_BYTES)

export interface ConnectorOptions {
  readonly secureContext: SecureContext
  readonly rejectUnauthorized: boolean
  readonly servername?: string | undefined
  readonly timeoutMs: number
  /** resolves names, and refuses addresses */
  readonly lookup?: LookupFunction | undefined
}

/**
 * Connections for requests whose answers are copied as they come. What `read` returns is valid until the next event of
 * any connection: undici's parser and `exchange` take it at once. Not for streams that may be paused.
 */
export function landingConnector(options: ConnectorOptions): buildConnector.connector {
  let session: Buffer | undefined
  return (target, callback) => {
    const servername = options.servername ?? (target.servername || undefined)
    const settings: ConnectionOptions & Pick<TcpNetConnectOpts, 'onread'> = {
      host: target.hostname.replace(/^\[|\]$/g, ''),
      port: Number(target.port || 443),
      ALPNProtocols: ['http/1.1'],
      secureContext: options.secureContext,
      rejectUnauthorized: options.rejectUnauthorized,
      // Documented for tls.connect too, though its types leave it out.
      onread: { buffer: landing, callback: (size) => landed(size) },
      ...(options.lookup && { lookup: options.lookup }),
      ...(servername === undefined ? {} : { servername }),
      ...(session === undefined ? {} : { session }),
    }
    const socket = connect(settings)
    const landed = readLanding(socket)
    const late = setTimeout(() => socket.destroy(connectTimeout(options.timeoutMs)), options.timeoutMs)
    let answer: buildConnector.Callback | undefined = callback
    socket.on('session', (next) => {
      session = next
    })
    socket.once('secureConnect', () => {
      clearTimeout(late)
      answer?.(null, socket)
      answer = undefined
    })
    socket.on('error', (error) => {
      clearTimeout(late)
      answer?.(error, null)
      answer = undefined
    })
    socket.setNoDelay(true).setKeepAlive(true, 60_000)
  }
}

/** Makes `read` give what landed. @returns what Node calls when bytes have landed. */
function readLanding(socket: TLSSocket): (size: number) => boolean {
  const readStream = socket.read.bind(socket)
  let waiting: Buffer | null = null
  // The stream itself never gets bytes, but still tells the end.
  socket.read = (size?: number) => {
    if (size === 0 || waiting === null) return readStream(size)
    const bytes = waiting
    waiting = null
    return bytes
  }
  return (size) => {
    const bytes = landing.subarray(0, size)
    waiting = waiting === null ? bytes : Buffer.concat([waiting, bytes])
    socket.emit('readable')
    // Nobody took it: the next bytes of any connection will land in the same place.
    if (waiting !== null) {
      waiting = Buffer.from(waiting)
      if (waiting.length > MAX_BACKLOG_BYTES) socket.destroy(new Error('the answer is not read'))
    }
    return true
  }
}

function connectTimeout(timeoutMs: number): Error {
  return Object.assign(new Error(`no connection within ${timeoutMs} ms`), { code: 'UND_ERR_CONNECT_TIMEOUT' })
}
