import { X509Certificate } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ApiRequest } from './http/call.ts'
import { AUTHENTICATED, type User } from './user.ts'

/** CAs whose client certificates say who calls, and that come and go while the port is open. */
export interface ClientAuthorities {
  /** the certificates of all that count now, PEM */
  readonly pem: string
  /** Whether a certificate of one of them still counts. */
  accepts(certificate: X509Certificate): boolean
  /** Calls the listener when either has changed. @returns what ends it */
  onChange(listener: () => void): () => void
}

interface Holder {
  readonly user: User
  readonly endsMs: number
  /** whether it counts at this moment */
  readonly counts: () => boolean
}

/** A certificate does not change while its connection lives; what it says is read once. */
const holders = new WeakMap<Socket, Holder>()

/**
 * Whom a verified client certificate names: the common name is the user, the organisations are the groups. It counts until it ends, its CA
 * is no longer trusted, or it is revoked, on connections that are open as well.
 * @returns undefined without a certificate, and for one that no CA of the port signed, that is no client's, or that names nobody or two
 */
export function certificateUser({ socket }: Pick<ApiRequest, 'socket'>, nowMs: number): User | undefined {
  const holder = socket && holders.get(socket)
  return holder && nowMs < holder.endsMs && holder.counts() ? holder.user : undefined
}

/** The CAs that one port trusts to say who calls: fixed ones, and those that come and go. */
export class ClientTrust {
  readonly #fixed: string
  readonly #fixedRoots: readonly X509Certificate[]
  readonly #live: ClientAuthorities | undefined
  #liveRoots: readonly X509Certificate[] = []
  /** that are under way, such as watches */
  readonly #answers = new Set<ServerResponse>()
  /** rises with every change of what is trusted */
  #revision = 0

  constructor(fixed: string | undefined, live: ClientAuthorities | undefined) {
    this.#fixed = fixed ?? ''
    this.#fixedRoots = certificatesIn(this.#fixed)
    this.#live = live
    this.#liveRoots = certificatesIn(live?.pem ?? '')
  }

  /** What a TLS server is told; undefined: certificates are not asked for. */
  get tls(): { readonly ca: string[]; readonly requestCert: true; readonly rejectUnauthorized: false } | undefined {
    const ca = [this.#fixed, this.#live?.pem ?? ''].filter(Boolean)
    // Who shows a certificate of another CA is let in as far as nobody is: a token may say who it is.
    return ca.length > 0 || this.#live ? { ca, requestCert: true, rejectUnauthorized: false } : undefined
  }

  /**
   * Looks at the certificate of every connection, and tells when the server must trust others.
   * @returns what ends it
   */
  attach(server: Server, renew: () => void): () => void {
    if (!this.tls) return () => undefined
    server.on('secureConnection', (socket) => this.#admit(socket))
    server.on('request', (request, response) => {
      if (!holders.has(request.socket)) return
      this.#answers.add(response)
      response.once('close', () => this.#answers.delete(response))
    })
    const end = this.#live?.onChange(() => {
      this.#liveRoots = certificatesIn(this.#live?.pem ?? '')
      this.#revision++
      renew()
      this.#endWatches()
    })
    return () => end?.()
  }

  /** The next request of a connection is refused; what is under way would go on. */
  #endWatches(): void {
    for (const { req } of this.#answers) if (holders.get(req.socket)?.counts() === false) req.socket.destroy()
  }

  #admit(socket: TLSSocket): void {
    const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined
    const user = certificate && userOf(socket)
    if (!certificate || !user) return
    let seen = -1
    let isTrusted = false
    const counts = () => {
      if (seen !== this.#revision) isTrusted = this.#trusts(certificate)
      seen = this.#revision
      return isTrusted
    }
    holders.set(socket, { user, endsMs: Date.parse(certificate.validTo), counts })
  }

  #trusts(certificate: X509Certificate): boolean {
    if (isOf(certificate, this.#fixedRoots)) return true
    return isOf(certificate, this.#liveRoots) && this.#live?.accepts(certificate) === true
  }
}

/** Whether one of the CAs signed the certificate, or one of those that were sent with it up to a CA. */
function isOf(certificate: X509Certificate, roots: readonly X509Certificate[]): boolean {
  for (let one: X509Certificate | undefined = certificate, depth = 0; one && depth < MAX_DEPTH; depth++) {
    const link: X509Certificate = one
    if (roots.some((root) => root.raw.equals(link.raw) || isSigned(link, root))) return true
    const { issuerCertificate } = link
    one = issuerCertificate && isSigned(link, issuerCertificate) ? issuerCertificate : undefined
  }
  return false
}

/** Longer chains are refused by TLS. */
const MAX_DEPTH = 10

const isSigned = (certificate: X509Certificate, by: X509Certificate): boolean =>
  certificate.checkIssued(by) && certificate.verify(by.publicKey)

function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}

function userOf(socket: TLSSocket): User | undefined {
  const { subject, fingerprint256 } = socket.getPeerCertificate()
  // Node's types know one value of each kind; a subject may hold several.
  const { CN: name, O: groups = [] } = (subject ?? {}) as { CN?: string | string[]; O?: string | string[] }
  if (typeof name !== 'string' || name === '') return undefined
  const digest = fingerprint256.replaceAll(':', '').toLowerCase()
  const extra = { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${digest}`] }
  return { name, groups: [...[groups].flat(), AUTHENTICATED], extra }
}
