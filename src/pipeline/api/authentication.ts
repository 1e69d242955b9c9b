import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { Principal } from '#access'
import { FleetError } from '#model'
import type { AuthenticationConfig } from './types.ts'

/** The configuration would open the API to people it is not meant for. */
export class UnsafeConfigurationError extends FleetError {
  override readonly name = 'UnsafeConfigurationError'
  readonly code = 'unsafe_configuration'
  readonly retryable = false
}

/** null: nobody we know. Decides from the connection and the headers of one request alone. */
export type Authenticate = (request: IncomingMessage) => Principal | null

export function authenticator(config: AuthenticationConfig): Authenticate {
  switch (config.mode) {
    case 'local-administrator':
      return always({
        username: config.username ?? 'local-administrator',
        email: '',
        groups: [],
        isServiceAccount: false,
        method: 'local-administrator',
      })
    case 'development':
      // The type says so already; a configuration from outside may not.
      if (config.environment !== 'development' || config.proxyEnabled !== false || !config.developmentUserEnabled)
        throw new UnsafeConfigurationError('the development user needs all three of its conditions')
      return always({
        username: 'dev-user',
        email: 'dev@clusterpulse.local',
        groups: ['developers', 'cluster-viewers'],
        isServiceAccount: false,
        method: 'development',
      })
    case 'trusted-proxy':
      return trustedProxy(config)
  }
}

const always =
  (principal: Principal): Authenticate =>
  () =>
    principal

type ProxyConfig = Extract<AuthenticationConfig, { mode: 'trusted-proxy' }>

function trustedProxy(config: ProxyConfig): Authenticate {
  const { trustedPeers, sharedSecret } = config
  if (trustedPeers.length === 0 && !sharedSecret)
    throw new UnsafeConfigurationError('identity headers need a list of trusted peers, a shared secret, or both')
  if (sharedSecret && sharedSecret.value.length < 16)
    throw new UnsafeConfigurationError('the secret shared with the proxy needs at least 16 characters')
  const peers = trustedPeers.length > 0 ? peerList(trustedPeers) : undefined
  const userHeader = (config.userHeader ?? 'X-Forwarded-User').toLowerCase()
  const emailHeader = (config.emailHeader ?? 'X-Forwarded-Email').toLowerCase()
  const groupsHeader = (config.groupsHeader ?? 'X-Forwarded-Groups').toLowerCase()

  return (request) => {
    if (peers && !peers(request.socket.remoteAddress ?? '')) return null
    if (sharedSecret && !sameSecret(single(request, sharedSecret.header.toLowerCase()), sharedSecret.value)) return null
    const username = single(request, userHeader)
    const email = single(request, emailHeader)
    const groups = single(request, groupsHeader)
    if (!username || email === undefined || groups === undefined) return null
    return {
      username,
      email,
      groups: [...new Set(groups.split(',').map((group) => group.trim()))].filter(Boolean).slice(0, maxGroups),
      isServiceAccount: username.startsWith('system:serviceaccount:'),
      method: 'trusted-proxy',
    }
  }
}

const maxGroups = 1000
const maxHeaderLength = 8192

/**
 * The one value of a header, '' where it is absent. undefined where it came twice or holds control characters: a client may
 * have sent its own beside the proxy's, and which of them is true cannot be told.
 */
function single(request: IncomingMessage, lowerCaseName: string): string | undefined {
  const { rawHeaders } = request
  let value: string | undefined
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== lowerCaseName) continue
    if (value !== undefined) return undefined
    value = rawHeaders[index + 1] ?? ''
  }
  const text = (value ?? '').trim()
  return text.length > maxHeaderLength || hasControls(text) ? undefined : text
}

const hasControls = (text: string): boolean => [...text].some((char) => char < ' ' || char === '\u007f')

// Hashed first, so that neither length nor place of the first difference shows in the time taken.
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const sameSecret = (given: string | undefined, expected: string): boolean =>
  given !== undefined && timingSafeEqual(digest(given), digest(expected))

/** Membership in a list of addresses and CIDR blocks; an IPv4 peer counts as such when it arrives on an IPv6 socket. */
function peerList(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries.map((text) => text.trim())) addPeer(list, entry)
  return (address) => {
    const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
    const family = isIP(plain)
    return family !== 0 && list.check(plain, family === 4 ? 'ipv4' : 'ipv6')
  }
}

function addPeer(list: BlockList, entry: string): void {
  const [address = '', prefix, ...rest] = entry.split('/')
  const family = isIP(address)
  const widest = family === 4 ? 32 : 128
  const bits = prefix === undefined ? widest : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
  if (family === 0 || rest.length > 0 || !(bits >= 0 && bits <= widest))
    throw new UnsafeConfigurationError(`${JSON.stringify(entry)} is neither an address nor a CIDR block`)
  list.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6')
}
