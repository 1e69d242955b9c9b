import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Principal } from '#access'
import type { Clock } from '#model'
import { UnsafeConfigurationError } from './errors.ts'
import { soleHeader, withoutBlanks } from './headers.ts'
import { cleanGroups, cleanName, isServiceAccountName } from './names.ts'
import { clientOf, peerList } from './peers.ts'
import type { ProxyConfig } from './types.ts'

/**
 * What a request says that comes from, or pretends to come from, the proxy.
 * `refused`, with the reason for the log: it is the proxy, but what it hands over names nobody for certain; no other way to
 * sign in may decide then.
 */
export type ProxyAnswer = Principal | 'no-proxy' | 'nobody' | { readonly refused: string }

export interface TrustedProxy {
  /** the peer proved, by everything that is configured, to be the proxy */
  isProxy(request: IncomingMessage): boolean
  read(request: IncomingMessage): ProxyAnswer
}

export function trustedProxy(config: ProxyConfig, clock: Clock): TrustedProxy {
  const { trustedPeers, sharedSecret, clientCa } = config
  if (trustedPeers.length === 0 && !sharedSecret && !clientCa)
    throw new UnsafeConfigurationError(
      'identity headers need TRUSTED_PROXIES, TRUSTED_PROXY_SECRET or TRUSTED_PROXY_CA_FILE',
    )
  if (sharedSecret && sharedSecret.value.length < 16)
    throw new UnsafeConfigurationError('TRUSTED_PROXY_SECRET needs at least 16 characters')
  const peers = trustedPeers.length > 0 ? peerList(trustedPeers) : undefined
  const certified = clientCa && clientOf(clientCa, clock)
  const { userHeader = 'X-Forwarded-User', emailHeader = 'X-Forwarded-Email' } = config
  const { groupsHeader = 'X-Forwarded-Groups', emailVerified = true } = config

  const isProxy = (request: IncomingMessage): boolean => {
    if (peers && !peers(request.socket.remoteAddress ?? '')) return false
    if (certified && !certified(request)) return false
    return !sharedSecret || sameSecret(soleHeader(request, sharedSecret.header), sharedSecret.value)
  }

  const read = (request: IncomingMessage): ProxyAnswer => {
    if (!isProxy(request)) return 'no-proxy'
    const user = soleHeader(request, userHeader)
    const email = soleHeader(request, emailHeader)
    const groupsText = soleHeader(request, groupsHeader)
    if (user === undefined || email === undefined || groupsText === undefined)
      return {
        refused: 'a header came twice, in another spelling, too long, or with characters that do not belong there',
      }
    if (user === '')
      return email === '' && groupsText === ''
        ? 'nobody'
        : { refused: `${userHeader} is empty, but address or groups came: name another header in OAUTH_HEADER_USER` }
    const username = cleanName(user)
    const groups = cleanGroups(splitList(groupsText))
    if (!username || !groups || (email !== '' && !cleanName(email)))
      return {
        refused: 'a name, group or address is too long or holds characters that do not print, or groups are too many',
      }
    return {
      username,
      email,
      ...(email !== '' && { emailVerified }),
      groups,
      isServiceAccount: isServiceAccountName(username),
      method: 'trusted-proxy',
    }
  }
  return { isProxy, read }
}

const splitList = (text: string): readonly string[] => text.split(',').map(withoutBlanks).filter(Boolean)

// Hashed first, so that neither length nor place of the first difference shows in the time taken.
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const sameSecret = (given: string | undefined, expected: string): boolean =>
  given !== undefined && timingSafeEqual(digest(given), digest(expected))
