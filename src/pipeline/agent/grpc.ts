import type { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import {
  checkServerIdentity,
  createSecureContext,
  type PeerCertificate,
  rootCertificates,
  type SecureContextOptions,
  connect as tlsConnect,
} from 'node:tls'
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { COLLECTOR_METHOD } from '#wire'
import { LinkError, type LinkFault } from './errors.ts'
import type { Link, Transport } from './types.ts'

/** How an agent proves the hub, and itself. */
export interface GrpcTlsOptions {
  /** PEM of the authorities that are believed, as a file or as text; default: those of the system */
  readonly caFile?: string
  readonly caPem?: string
  /** SHA-256 of the hub's certificate or of one of its chain, hex with or without colons: believed without a file */
  readonly caFingerprint?: string
  /** The name that the certificate must carry; default: the dialled host, which stays the SNI in any case. */
  readonly serverName?: string
  /** PEM files of our own certificate, for mutual TLS */
  readonly certFile?: string
  readonly keyFile?: string
  /** the same, as text */
  readonly identity?: { readonly certificate: string; readonly key: string }
}

/** How the stream to a hub is opened. */
export interface GrpcOptions {
  /** any target of gRPC, such as `hub.example:9443` or `dns:///hub.example:9443` */
  readonly address: string
  /** asked at each attempt; undefined: none is sent */
  readonly token?: () => Promise<string | undefined>
  /** asked at each attempt where it is a function; default: HTTP/2 in the clear */
  readonly tls?: GrpcTlsOptions | (() => GrpcTlsOptions)
  /** for the stream to be there, ms; default 20 s */
  readonly connectTimeoutMs?: number
  readonly userAgent?: string
}

const bytes = (message: Uint8Array) => Buffer.from(message.buffer, message.byteOffset, message.byteLength)
/** A dead socket is noticed within 15 s. Hubs of the original end streams that ask more often than every 10 s. */
const KEEPALIVE_MS = 10_500
const KEEPALIVE_TIMEOUT_MS = 4_000
const MAX_RECEIVED_BYTES = 64 * 2 ** 20
const MAX_WAITING = 1024

/** Streams to a hub over gRPC. Files and the token are read again for each, so that rotated ones are taken. */
export function grpcTransport(options: GrpcOptions): Transport {
  return {
    async open(signal) {
      signal.throwIfAborted()
      const token = await options.token?.()
      const wanted = typeof options.tls === 'function' ? options.tls() : options.tls
      const tls = wanted && (await readTls(options.address, wanted, options.connectTimeoutMs ?? 20_000))
      const client = new Client(options.address, tls?.credentials ?? credentials.createInsecure(), {
        'grpc.keepalive_time_ms': KEEPALIVE_MS,
        'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
        'grpc.keepalive_permit_without_calls': 1,
        'grpc.max_receive_message_length': MAX_RECEIVED_BYTES,
        'grpc.max_send_message_length': -1,
        'grpc.enable_retries': 0,
        'grpc.use_local_subchannel_pool': 1,
        // An address by number has no name to show (RFC 6066); what is verified is decided in checkServerIdentity.
        ...(tls && isIP(hostOf(options.address)) !== 0 && { 'grpc.ssl_target_name_override': 'localhost' }),
        ...(options.userAgent !== undefined && { 'grpc.primary_user_agent': options.userAgent }),
      })
      try {
        await ready(client, options, signal, () => tls?.isMet() === true)
        const metadata = new Metadata()
        if (token !== undefined && token !== '') metadata.set('authorization', `Bearer ${token}`)
        const call = client.makeBidiStreamRequest<Uint8Array, Uint8Array>(
          COLLECTOR_METHOD,
          bytes,
          (read) => read,
          metadata,
        )
        return new GrpcLink(client, call, options, tls?.fault)
      } catch (error) {
        client.close()
        throw tls?.fault() ?? error
      }
    },
  }
}

/** Waits for the connection: what goes wrong there has better words than a failing call. @param isMet a hub showed its certificate */
async function ready(
  client: Client,
  { address, connectTimeoutMs = 20_000 }: GrpcOptions,
  signal: AbortSignal,
  isMet: () => boolean,
): Promise<void> {
  const channel = client.getChannel()
  await new Promise<void>((resolve, reject) => {
    const deadline = Date.now() + connectTimeoutMs
    const onAbort = () => reject(new LinkError('ended', 'the attempt was given up'))
    signal.addEventListener('abort', onAbort, { once: true })
    const finish = (error?: Error) => {
      signal.removeEventListener('abort', onAbort)
      if (error) reject(error)
      else resolve()
    }
    const look = () => {
      const state = channel.getConnectivityState(true)
      if (state === 2) return finish() // READY
      if (state === 3 || state === 4) {
        // TRANSIENT_FAILURE: a call tells why.
        probe(client, address, isMet).then(finish, finish)
        return
      }
      channel.watchConnectivityState(state, deadline, (error) => {
        if (signal.aborted) return
        if (error) finish(noAnswer(address, connectTimeoutMs))
        else look()
      })
    }
    look()
  })
}

/** A call on a channel that failed to connect ends at once, with the reason. */
function probe(client: Client, address: string, isMet: () => boolean): Promise<Error> {
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest<Uint8Array, Uint8Array>(
      COLLECTOR_METHOD,
      bytes,
      (read) => read,
      new Metadata(),
    )
    call.on('error', (error: ServiceError) => resolve(linkErrorOf(error, address, isMet() ? 'met' : 'connecting')))
    call.on('data', () => undefined)
    call.on('end', () => resolve(new LinkError('ended', `${address} ended the stream`)))
  })
}

class GrpcLink implements Link {
  readonly #client: Client
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>
  readonly #waiting: Uint8Array[] = []
  #over: LinkError | 'ended' | undefined
  #wake: (() => void) | undefined
  #onDrain: (() => void)[] = []

  constructor(
    client: Client,
    call: ClientDuplexStream<Uint8Array, Uint8Array>,
    { address }: GrpcOptions,
    tlsFault: (() => LinkError | undefined) | undefined,
  ) {
    this.#client = client
    this.#call = call
    call.on('data', (message: Uint8Array) => {
      this.#waiting.push(message)
      if (this.#waiting.length >= MAX_WAITING) call.pause()
      this.#wake?.()
    })
    call.on('error', (error: ServiceError) => this.#end(tlsFault?.() ?? linkErrorOf(error, address, 'open')))
    call.on('end', () => this.#end('ended'))
    call.on('drain', () => this.#drained())
  }

  get messages(): AsyncIterable<Uint8Array> {
    return this.#read()
  }

  send(message: Uint8Array): boolean {
    if (this.#over !== undefined) return false
    return this.#call.write(message)
  }

  writable(): Promise<void> {
    if (this.#over !== undefined || !this.#call.writableNeedDrain) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onDrain.push(resolve)
    })
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
        yield next
        if (this.#call.isPaused() && this.#waiting.length < MAX_WAITING / 2) this.#call.resume()
      }
      if (this.#over instanceof LinkError) throw this.#over
      if (this.#over === 'ended') return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  // An error may follow the end: gRPC tells the status last.
  #end(over: LinkError | 'ended'): void {
    if (this.#over === undefined || over !== 'ended') this.#over ??= over
    this.#drained()
    // The status comes right after the end; whoever reads should hear the reason.
    setImmediate(() => this.#wake?.())
  }

  #drained(): void {
    for (const resolve of this.#onDrain.splice(0)) resolve()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over ??= 'ended'
    this.#drained()
    this.#wake?.()
    this.#call.cancel()
    this.#client.close()
  }
}

interface ReadTls {
  readonly credentials: ChannelCredentials
  /** why the last handshake failed, where we know more than gRPC tells */
  fault(): LinkError | undefined
  /** the server showed a certificate that we believe */
  isMet(): boolean
}

async function readTls(address: string, tls: GrpcTlsOptions, timeoutMs: number): Promise<ReadTls> {
  const [caRead, certRead, keyRead] = await Promise.all([read(tls.caFile), read(tls.certFile), read(tls.keyFile)])
  const ca = tls.caPem ?? caRead
  const [cert, key] = tls.identity ? [tls.identity.certificate, tls.identity.key] : [certRead, keyRead]
  const host = hostOf(address)
  let fault: LinkError | undefined
  let isMet = false
  const roots =
    tls.caFingerprint !== undefined && ca === undefined
      ? await pinned(address, tls.caFingerprint, tls.serverName ?? host, timeoutMs)
      : ca
  // A pinned certificate need not be a root: what it is itself is enough.
  const context: SecureContextOptions & { readonly allowPartialTrustChain?: boolean } = {
    ca: roots ?? [...rootCertificates],
    minVersion: 'TLSv1.2',
    allowPartialTrustChain: tls.caFingerprint !== undefined,
    ...(key && cert && { key, cert }),
  }
  const created = credentials.createFromSecureContext(createSecureContext(context), {
    checkServerIdentity(_dialled: string, certificate: PeerCertificate) {
      isMet = true
      const error = checkServerIdentity(tls.serverName ?? host, certificate)
      if (error) {
        const names = certificate.subjectaltname ?? certificate.subject?.CN ?? 'none'
        const wanted = tls.serverName ?? host
        fault = new LinkError(
          'name_mismatch',
          `the certificate of ${address} is for ${names}, not for ${wanted}; set INGESTER_TLS_SERVER_NAME to a name it carries`,
          { cause: error },
        )
      }
      return error
    },
  })
  return { credentials: created, fault: () => fault, isMet: () => isMet }
}

async function read(file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file)
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? String(cause)
    throw new LinkError('configuration', `${file} cannot be read (${why}); check the path and its mode`, { cause })
  }
}

/**
 * The certificate of the server's chain that has this fingerprint, as the only root. The chain is verified against it by the
 * handshake that follows: this one only fetches, and believes nothing but the fingerprint.
 */
async function pinned(address: string, fingerprint: string, serverName: string, timeoutMs: number): Promise<Buffer> {
  const wanted = fingerprint.replaceAll(':', '').toLowerCase()
  const host = hostOf(address)
  const chain = await new Promise<X509Certificate[]>((resolve, reject) => {
    const socket = tlsConnect({
      host,
      port: portOf(address),
      servername: /^[\d.]+$|:/.test(host) ? undefined : host,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
      timeout: timeoutMs,
    })
    const fail = (error: Error) => {
      socket.destroy()
      reject(faultOf(error.message, address, { cause: error, stage: 'connecting' }))
    }
    socket.once('error', fail)
    socket.once('timeout', () => fail(new Error('ETIMEDOUT')))
    socket.once('secureConnect', () => {
      const found: X509Certificate[] = []
      for (let at = socket.getPeerX509Certificate(); at && found.length < 10; at = at.issuerCertificate) {
        if (found.some(({ fingerprint256 }) => fingerprint256 === at?.fingerprint256)) break
        found.push(at)
      }
      socket.destroy()
      resolve(found)
    })
  })
  const match = chain.find(({ fingerprint256 }) => fingerprint256.replaceAll(':', '').toLowerCase() === wanted)
  if (match) return Buffer.from(match.toString())
  throw new LinkError(
    'unknown_ca',
    `${address} shows no certificate with the fingerprint ${wanted.slice(0, 16)}… (it serves ${serverName}): run "clusterpulse connect" on the hub again for a fresh one, and check that nothing stands in between`,
  )
}

const targetOf = (address: string) =>
  address.replace(/^[a-z0-9+.-]+:(\/\/[^/]*\/)?(?=\D|\d+\.|\[)/i, (scheme) =>
    /^(dns|ipv4|ipv6|https?|passthrough):/i.test(scheme) ? '' : scheme,
  )

/** The host a target of gRPC dials: what the certificate must carry where nothing else is said. */
export function hostOf(address: string): string {
  const target = targetOf(address)
  const bracketed = /^\[([^\]]+)\]/.exec(target)
  return bracketed?.[1] ?? target.replace(/:\d+$/, '')
}

export const portOf = (address: string): number => Number(/:(\d+)$/.exec(targetOf(address))?.[1] ?? 443)

const UNKNOWN_CA =
  /self.signed certificate|unable to (get|verify)|SELF_SIGNED_CERT|UNABLE_TO_(GET|VERIFY)|unknown ca|DEPTH_ZERO/i

/** How far it came. */
type Stage = 'connecting' | 'met' | 'open'

function linkErrorOf(error: ServiceError, address: string, stage: Stage): LinkError {
  const details = error.details || error.message
  switch (error.code) {
    case status.UNAUTHENTICATED:
    case status.PERMISSION_DENIED:
      return new LinkError(
        'unauthenticated',
        `the hub at ${address} does not accept our credential: it was revoked, has expired, or is of another hub; give this agent another one (COLLECTOR_TOKEN; on the hub, \`clusterpulse connect NAME --bearer-token\` prints it)`,
        { cause: error },
      )
    case status.UNIMPLEMENTED:
      return new LinkError('not_served', `${address} serves gRPC, but no collector: is it the ingester's address?`, {
        cause: error,
      })
    default:
      return faultOf(details, address, { cause: error, stage })
  }
}

const noAnswer = (address: string, withinMs: number): LinkError =>
  new LinkError(
    'unreachable',
    `${address} does not answer: nothing came within ${withinMs / 1000} s; check the route and firewalls`,
  )

/** Words for what the TLS library and the system say. */
function faultOf(
  details: string,
  address: string,
  { cause, stage }: { readonly cause: Error; readonly stage: Stage },
): LinkError {
  const make = (fault: LinkFault, sentence: string) => new LinkError(fault, sentence, { cause })
  if (/ECONNREFUSED/.test(details))
    return make('refused', `${address} refuses the connection: nothing listens there, or a firewall says no`)
  if (/ENOTFOUND|EAI_AGAIN|Name resolution failed/i.test(details))
    return make('unreachable', `the name in ${address} is not found; check it, and the DNS of this machine`)
  if (/ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|Deadline/i.test(details))
    return make('unreachable', `${address} does not answer; check the route and firewalls`)
  if (/expired|not yet valid/i.test(details)) {
    const now = new Date().toISOString().slice(0, 16)
    return make(
      'certificate_expired',
      `the certificate of ${address} ${/expired/i.test(details) ? 'has expired' : 'is not valid yet'} by the clock of this machine, which says ${now} UTC; where that is wrong set it (NTP), else renew the certificate on the hub`,
    )
  }
  if (UNKNOWN_CA.test(details)) {
    return make(
      'unknown_ca',
      `the certificate of ${address} is signed by an authority we do not know; name it with INGESTER_TLS_CA or INGESTER_CA_FINGERPRINT`,
    )
  }
  if (/wrong version number|packet length too long|EPROTO/i.test(details)) {
    return make('not_tls', `${address} does not speak TLS there; set INGESTER_TLS_ENABLED=false, or use its TLS port`)
  }
  if (stage === 'open') return make('ended', brokenWords(address, details))
  return new LinkError('ended', endedAtOnce(address), { cause, isCut: stage === 'connecting' })
}

const endedAtOnce = (address: string): string =>
  `${address} ends the connection as soon as it is made: the hub does not take our certificate, starts or stops, or something in between cuts it off`

/** What gRPC and the socket say of a connection that is simply gone. */
const JUST_GONE = /RST_STREAM|ECONNRESET|EPIPE|Connection dropped|socket hang up|GOAWAY|No connection established/i

const brokenWords = (address: string, details: string): string =>
  JUST_GONE.test(details) ? `the connection to ${address} broke` : `the stream to ${address} ended: ${details}`
