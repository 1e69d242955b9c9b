import { createHash, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import {
  createSecureContext,
  createServer as createTlsServer,
  type TLSSocket,
  type Server as TlsServer,
} from 'node:tls'
import { invariant } from '#model'
import type { Logger } from '#runtime'
import type { StreamLimits } from '../line/limits.ts'
import type { PeerCertificate } from '../line/presented.ts'
import { ServerTlsError } from './errors.ts'
import { Handshakes } from './handshakes.ts'
import { certificateOf } from './peer-certificate.ts'
import type { ServerTls } from './types.ts'

const RELOAD_EVERY_MS = 1_000
const UNVERIFIED_EVERY_MS = 60_000

export interface ListenerOptions {
  readonly host: string
  readonly port: number
  readonly tls: ServerTls | 'plaintext'
  readonly limits: StreamLimits
  readonly logger: Logger
  /** of this address more came than sound agents send */
  readonly isSlow: (address: string) => boolean
  /** a client's certificate verified, and counts no more: its connection ends */
  readonly isRevoked?: (certificate: PeerCertificate) => boolean
  /** a connection that may speak HTTP/2: after its handshake where there is TLS */
  readonly onConnection: (socket: Socket) => void
  readonly onRefused: (why: 'connections' | 'handshake') => void
}

/** Whether the hub ended a connection. */
export interface Cut {
  /** for people; '': it did not */
  readonly why: string
  /** for how long nothing was heard of it when it was ended for that; 0: it was not */
  readonly silentMs: number
}

export const NOT_CUT: Cut = { why: '', silentMs: 0 }

interface Heard {
  readonly socket: Socket
  /** that was shown, and counted then */
  readonly certificate: PeerCertificate | undefined
  /** the same as it was sent, DER */
  readonly raw: Buffer | undefined
  /** it counts no more: whoever holds it is told by its stream, if it has one, before the connection ends */
  isRevoked: boolean
  /** that came so far */
  bytes: number
  quietSweeps: number
  why: string
  silentMs: number
}

/**
 * Accepts connections: so many at most, TLS handshakes a few at a time with a fair share for each address, each in bounded
 * time. A changed certificate is taken for the next handshake; connections that are open stay as they are.
 */
export class Listener implements AsyncDisposable {
  readonly #options: ListenerOptions
  readonly #tcp: Server
  #tls: TlsServer | undefined
  #reload: NodeJS.Timeout | undefined
  #fingerprint = ''
  /** the certificate that is shown, PEM */
  #shown = ''
  /** that clients' certificates may be signed by, PEM */
  #authorities: readonly string[] = []
  /** those that were read last, where they differ: a file may be in the midst of being written */
  #unsettled: readonly string[] | undefined
  #isDoubtful = false
  #unverified = 0
  #unverifiedSaidAt = Number.NEGATIVE_INFINITY
  readonly #sockets = new Map<string, Socket>()
  /** those that may speak HTTP/2, and so answer when they are asked */
  readonly #heard = new Map<string, Heard>()
  readonly #handshakes: Handshakes

  private constructor(options: ListenerOptions) {
    this.#options = options
    this.#handshakes = new Handshakes({
      limits: options.limits,
      isSlow: options.isSlow,
      begin: (socket) => this.#tls?.emit('connection', socket),
      onRefused: () => options.onRefused('handshake'),
    })
    this.#tcp = createServer({ noDelay: true, pauseOnConnect: options.tls !== 'plaintext' }, (socket) =>
      this.#arrived(socket),
    )
    this.#tcp.maxConnections = options.limits.maxConnections
    this.#tcp.on('drop', () => options.onRefused('connections'))
  }

  /** @throws ServerTlsError where the files cannot be used; the system's error where the port cannot be had */
  static async open(options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(options)
    if (options.tls !== 'plaintext') await listener.#openTls(options.tls)
    await new Promise<void>((resolve, reject) => {
      listener.#tcp.once('error', reject)
      listener.#tcp.listen(options.port, options.host, () => {
        listener.#tcp.off('error', reject)
        resolve()
      })
    }).catch(async (error: unknown) => {
      await listener[Symbol.asyncDispose]()
      throw error
    })
    return listener
  }

  get port(): number {
    const address = this.#tcp.address()
    return typeof address === 'object' && address ? address.port : 0
  }

  /** Ends the connection of a peer, such as `127.0.0.1:4711`, that does not end by itself. */
  drop(peer: string): void {
    this.#sockets.get(peer)?.destroy()
  }

  /** Of the connection of a peer, as long as it lives and after its end. */
  cutOf(peer: string): Cut {
    return this.#heard.get(peer) ?? NOT_CUT
  }

  /** What certificates count may have changed: those that were shown are looked at again. */
  doubtCertificates(): void {
    this.#isDoubtful = true
  }

  /**
   * Now and then: ends connections of which nothing was heard for too long, as where a network was cut without a word, and those whose
   * certificate was revoked since.
   */
  sweep(): void {
    this.#endRevoked()
    const { silentMs, sweepMs } = this.#options.limits
    for (const heard of this.#heard.values()) {
      const { bytesRead } = heard.socket
      heard.quietSweeps = bytesRead === heard.bytes ? heard.quietSweeps + 1 : 0
      heard.bytes = bytesRead
      if (heard.quietSweeps * sweepMs < silentMs) continue
      heard.silentMs = heard.quietSweeps * sweepMs
      cut(heard, 'nothing was heard of it')
    }
  }

  #endRevoked(): void {
    if (!this.#isDoubtful) return
    this.#isDoubtful = false
    for (const heard of this.#heard.values()) {
      if (!heard.certificate || this.#options.isRevoked?.(heard.certificate) !== true) heard.isRevoked = false
      else if (heard.isRevoked) cut(heard, 'the hub ended the stream: its certificate was revoked')
      else {
        heard.isRevoked = true
        this.#isDoubtful = true
      }
    }
  }

  /** Takes no more connections; those that are open end with the process, or by `drop`. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#reload)
    this.#handshakes.close()
    const closed = new Promise<void>((resolve) => this.#tcp.close(() => resolve()))
    for (const socket of this.#sockets.values()) socket.destroy()
    if (this.#tcp.listening) await closed
  }

  #arrived(socket: Socket) {
    const peer = peerOf(socket)
    this.#sockets.set(peer, socket)
    socket.once('close', () => {
      this.#sockets.delete(peer)
      this.#heard.delete(peer)
    })
    // Whoever breaks off is a matter of the stream, if there is one yet.
    socket.on('error', (error) => this.#options.logger.debug({ peer, error: error.message }, 'a connection broke'))
    if (!this.#tls) return this.#connected(socket, socket)
    this.#handshakes.arrived(socket)
  }

  /** @param spoken the same, inside its encryption where there is one */
  #connected(socket: Socket, spoken: Socket, certificate?: PeerCertificate, raw?: Buffer) {
    const nothing = { isRevoked: false, bytes: 0, quietSweeps: 0 }
    this.#heard.set(peerOf(socket), { socket, certificate, raw, ...nothing, ...NOT_CUT })
    this.#options.onConnection(spoken)
  }

  async #openTls(files: ServerTls): Promise<void> {
    const read = await readContext(files)
    invariant(read, 'there is none that it could be equal to')
    const { context, fingerprint } = read
    this.#fingerprint = fingerprint
    this.#shown = context.cert
    this.#authorities = context.ca ?? []
    const tls = createTlsServer({
      ...context,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['h2'],
      // A certificate is asked for, not demanded: who has none may show a token. One that does not verify counts as none.
      requestCert: files.clientCaFile !== undefined || files.clientCas !== undefined,
      rejectUnauthorized: false,
      handshakeTimeout: this.#options.limits.handshakeMs,
    })
    tls.on('secureConnection', (secured: TLSSocket) => {
      const socket = this.#sockets.get(peerOf(secured))
      if (socket) this.#handshakes.finished(socket)
      this.#noteUnverified(secured)
      secured.on('error', (error) => this.#options.logger.debug({ error: error.message }, 'a connection broke'))
      // One that is not revoked, and does not count for another reason, its stream is told.
      const shown = secured.authorized ? secured.getPeerCertificate() : undefined
      const certificate = shown && certificateOf(shown)
      const isRevoked = certificate !== undefined && this.#options.isRevoked?.(certificate) === true
      if (secured.alpnProtocol === 'h2' && socket && !isRevoked)
        return this.#connected(socket, secured, certificate, shown?.raw)
      this.#options.onRefused('handshake')
      secured.destroy()
    })
    tls.on('tlsClientError', (error, secured) => {
      this.#options.logger.debug({ error: error.message }, 'a TLS handshake failed')
      this.#options.onRefused('handshake')
      secured.destroy()
    })
    this.#tls = tls
    let reading = false
    this.#reload = setInterval(() => {
      if (reading) return
      reading = true
      void this.#reloadTls(files).finally(() => {
        reading = false
      })
    }, RELOAD_EVERY_MS)
    this.#reload.unref()
  }

  /** Ends connections by certificates of an authority that is trusted no more; what others signed stays. */
  #trust(authorities: readonly string[]): void {
    // None at all is no decision about any.
    if (authorities.length === 0) return
    const before = this.#authorities
    this.#authorities = authorities
    const removed = before.filter((one) => !authorities.includes(one))
    if (removed.length === 0) return
    const [former, now] = [certificatesOf(removed), certificatesOf(authorities)]
    let ended = 0
    for (const heard of this.#heard.values()) {
      if (!heard.raw || !isEndedWith(heard.raw, former, now)) continue
      cut(heard, 'the hub ended the stream, as it no longer trusted the authority that signed its certificate')
      ended++
    }
    if (ended > 0)
      this.#options.logger.warn(
        { ended },
        'the authority that signed the certificates of these connections is trusted no more: they were ended',
      )
  }

  /** It counts as none. Where many do not verify, the CA that signed them is gone from here: said once in a while, as anybody can show one. */
  #noteUnverified(secured: TLSSocket): void {
    if (secured.authorized || !secured.getPeerX509Certificate()) return
    this.#unverified++
    const now = performance.now()
    if (now < this.#unverifiedSaidAt + UNVERIFIED_EVERY_MS) return
    this.#unverifiedSaidAt = now
    const { subject } = secured.getPeerCertificate()
    this.#options.logger.warn(
      {
        peer: peerOf(secured),
        subject: String(subject?.CN).slice(0, 200),
        why: secured.authorizationError,
        shown: this.#unverified,
      },
      'an agent shows a certificate that does not verify here: where the CA that signs members was replaced without an overlap, restore it from a backup, or let the clusters join anew',
    )
  }

  async #reloadTls(files: ServerTls): Promise<void> {
    try {
      const read = await readContext(files, this.#fingerprint)
      if (!read) {
        if (this.#unsettled) this.#trust(this.#unsettled)
        this.#unsettled = undefined
        return
      }
      const { context, fingerprint } = read
      this.#tls?.setSecureContext({ ...context, minVersion: 'TLSv1.2' })
      this.#fingerprint = fingerprint
      const isRenewed = context.cert !== this.#shown
      this.#shown = context.cert
      this.#unsettled = context.ca ?? []
      this.#options.logger.info(
        { certificate: files.certFile },
        isRenewed
          ? 'the certificate of the agents listener was renewed'
          : 'the agents listener knows the CAs of members that count now',
      )
    } catch (error) {
      // Files are replaced one after the other: between the two they are no pair. The old ones serve on.
      this.#options.logger.warn(
        { error: error instanceof Error ? error.message : String(error) },
        'changed TLS files cannot be used yet: the old certificate stays',
      )
    }
  }
}

const certificatesOf = (pems: readonly string[]) => pems.map((pem) => new X509Certificate(pem))

/** Signed by one of the former, and by none that is trusted now. One that cannot be read again has to be shown again. */
function isEndedWith(raw: Buffer, former: readonly X509Certificate[], now: readonly X509Certificate[]): boolean {
  try {
    const leaf = new X509Certificate(raw)
    const isOf = (authority: X509Certificate) => leaf.checkIssued(authority) && leaf.verify(authority.publicKey)
    return former.some(isOf) && !now.some(isOf)
  } catch {
    return true
  }
}

const peerOf = (socket: Socket) => `${socket.remoteAddress}:${socket.remotePort}`

/** The pair, checked to be one, and what tells it from another. @returns undefined where it is the one that is known */
async function readContext({ certFile, keyFile, clientCaFile, clientCas }: ServerTls, known?: string) {
  const read = (file: string) =>
    readFile(file, 'utf8').catch((cause: unknown) => {
      throw new ServerTlsError(file, cause instanceof Error ? cause.message : 'unreadable', { cause })
    })
  const [cert, key, given = '', further = ''] = await Promise.all([
    read(certFile),
    read(keyFile),
    clientCaFile ? read(clientCaFile) : undefined,
    clientCas?.(),
  ])
  const isAsked = clientCaFile !== undefined || clientCas !== undefined
  // Of no authority at all Node would take those of the system.
  const context = { cert, key, ...(isAsked && { ca: authoritiesIn(`${given}\n${further}`) }) }
  const fingerprint = createHash('sha256').update(JSON.stringify(context)).digest('hex')
  if (fingerprint === known) return undefined
  // A file that is being written is empty for a moment, which makes a context without a certificate, and nobody is served.
  for (const [file, text] of [
    [certFile, cert],
    [keyFile, key],
  ] as const)
    if (text.trim() === '') throw new ServerTlsError(file, 'it is empty')
  try {
    createSecureContext(context)
  } catch (cause) {
    throw new ServerTlsError(certFile, cause instanceof Error ? cause.message : 'unusable', { cause })
  }
  return { context, fingerprint }
}

const authoritiesIn = (pem: string): string[] =>
  pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []

function cut(heard: Heard, why: string): void {
  heard.why = why
  heard.socket.destroy()
}
