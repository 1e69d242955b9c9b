import { isIP } from 'node:net'
import { nkeys } from '@nats-io/transport-node'

/** Where a NATS server is, and whether TLS is spoken to it. */
export interface NatsServer {
  /** as TLS certificates name it; an IPv6 address without brackets */
  readonly host: string
  readonly port: number
  readonly tls: boolean
}

/** As whom NATS is spoken to, and how its certificate is verified. */
export interface NatsAccess {
  /** PEM; each absent: the roots of the system, no certificate of ours */
  readonly tls?: {
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
    /** false: any certificate is taken */
    readonly rejectUnauthorized?: boolean
  }
  /** absent: nobody is asked who he is */
  readonly credentials?: NatsCredentials
}

/** How to reach NATS, and as whom. */
export interface NatsConfig extends NatsAccess {
  /** tried in turn */
  readonly servers: readonly NatsServer[]
  /** addresses and ranges that may be dialed although they are link-local, of a metadata service or unspecified */
  readonly outboundAllow?: readonly string[]
}

export type NatsCredentials =
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'token'; readonly token: string }
  /** seed of a user's key, `SU…` */
  | { readonly kind: 'nkey'; readonly seed: string }
  /** what a .creds file holds */
  | { readonly kind: 'creds'; readonly jwt: string; readonly seed: string }

const DEFAULT_PORT = 4222

/** Whether it is the seed of a user's key, down to its check sum. */
export function isUserSeed(text: string): boolean {
  if (!text.startsWith('SU')) return false
  try {
    return nkeys.fromSeed(new TextEncoder().encode(text)).getPublicKey().startsWith('U')
  } catch {
    return false
  }
}

/**
 * Reads the content of a .creds file: a JWT and a seed, each between a line of BEGIN and one of END.
 * @returns a sentence, without what may be secret, where it is nothing of the sort
 */
export function parseNatsCreds(text: string): NatsCredentials | { readonly fault: string } {
  const [jwt, seed] = [...text.matchAll(/-{3,}BEGIN[^\n]*-{3,}\s+(\S+)\s+-{3,}END/g)].map(([, inner = '']) => inner)
  if (jwt === undefined || jwt.split('.').length !== 3)
    return { fault: 'holds no JWT between "-----BEGIN NATS USER JWT-----" and its END: it must be a whole .creds file' }
  if (seed === undefined || !isUserSeed(seed))
    return { fault: 'holds no seed of a user (SU…) after its JWT: it must be a whole .creds file' }
  return { kind: 'creds', jwt, seed }
}

/**
 * Reads `nats://host:4222`, `tls://host`, `host:4222`, or several of them with commas between.
 * @returns a sentence, without what may be secret, where it is nothing of the sort
 */
export function parseNatsServers(text: string): readonly NatsServer[] | { readonly fault: string } {
  const servers: NatsServer[] = []
  for (const one of text.split(',').map((part) => part.trim())) {
    const server = parseServer(one)
    if ('fault' in server) return server
    servers.push(server)
  }
  return servers
}

function parseServer(text: string): NatsServer | { readonly fault: string } {
  const [, scheme = 'nats', rest = ''] = /^(?:([a-z]+):\/\/)?(.*)$/i.exec(text) ?? []
  if (rest.includes('@'))
    return {
      fault:
        'holds a user or a token, which an address does not hide: give NATS_USER and NATS_PASSWORD_FILE, or NATS_TOKEN_FILE',
    }
  if (scheme !== 'nats' && scheme !== 'tls')
    return { fault: `has the scheme ${JSON.stringify(scheme)}; it must be nats:// or tls://` }
  const [, six, name, digits] = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::(\d{1,5}))?\/?$/i.exec(rest) ?? []
  const host = six ?? name ?? ''
  const port = digits === undefined ? DEFAULT_PORT : Number(digits)
  if (host === '' || (six !== undefined && isIP(six) !== 6) || port < 1 || port > 65535)
    return {
      fault: `is ${JSON.stringify(text.slice(0, 80))}; it must be nats://host:4222, or several with commas between`,
    }
  return { host, port, tls: scheme === 'tls' }
}
