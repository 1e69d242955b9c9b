import { ProbeError } from './errors.ts'
import { type Challenge, type Headers, linesOf, parseChallenges } from './header.ts'
import type { RegistryTarget } from './types.ts'
import type { Wire } from './wire.ts'

/** What a registry wants before it answers, of what we can give. */
export type Demand =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service: string; readonly scope: string }

const TOKEN_BYTES = 64 * 1024
/** For listing repositories; registries ignore what they do not know. */
export const CATALOG_SCOPE = 'registry:catalog:*'

/** Reads what is demanded; Bearer is preferred, as that is what registries that offer both mean. undefined: nothing we can give. */
export function demandOf(headers: Headers): Demand | undefined {
  const challenges = parseChallenges(linesOf(headers, 'www-authenticate'))
  const bearer = challenges.find(({ scheme, parameters }) => scheme === 'bearer' && parameters.has('realm'))
  if (bearer) return bearerOf(bearer)
  // A 401 without a challenge is against the rules, and from a registry it still means Basic.
  const isBasic = challenges.length === 0 || challenges.some(({ scheme }) => scheme === 'basic')
  return isBasic ? { scheme: 'basic' } : undefined
}

const bearerOf = ({ parameters }: Challenge): Demand => ({
  scheme: 'bearer',
  realm: parameters.get('realm') ?? '',
  service: parameters.get('service') ?? '',
  scope: parameters.get('scope') ?? '',
})

export const basicOf = ({ username, password }: NonNullable<RegistryTarget['credentials']>): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

/**
 * What to send so that the demand is met.
 * @param secrets is told of every token, so that none is shown
 * @returns undefined: without credentials there is nothing to send
 * @throws ProbeError `unauthorized` where the token service refuses the credentials, `token_failed` where it does not work,
 * `redirect_refused` where it is at a place that is not to be asked
 */
export async function authorization(
  demand: Demand,
  scope: string,
  { target, wire, home, secrets }: { target: RegistryTarget; wire: Wire; home: URL; secrets: string[] },
): Promise<string | undefined> {
  const basic = target.credentials && basicOf(target.credentials)
  if (demand.scheme === 'basic') return basic
  const url = realmUrl(demand, demand.scope || scope, home, target)
  const answer = await wire.get(url, { maxBytes: TOKEN_BYTES, authorization: basic, stays: true })
  if (answer.status === 401 || answer.status === 403)
    throw new ProbeError('unauthorized', `the token service ${url.host} refuses them`)
  if (answer.status !== 200)
    throw new ProbeError('token_failed', `the token service ${url.host} answers with status ${answer.status}`)
  const token = answer.isCut ? undefined : tokenOf(answer.body)
  if (token === undefined) throw new ProbeError('token_failed', `the token service ${url.host} answers without a token`)
  secrets.push(token)
  return `Bearer ${token}`
}

function realmUrl(demand: Demand & { scheme: 'bearer' }, scope: string, home: URL, target: RegistryTarget): URL {
  const { realm, service } = demand
  if (realm.length > 2048 || !URL.canParse(realm, home.href))
    throw new ProbeError('token_failed', 'the registry names a token service that is no address')
  const url = new URL(realm, home)
  const isClear = url.protocol === 'http:' && target.insecure
  if (url.protocol !== 'https:' && !isClear)
    throw new ProbeError(
      'redirect_refused',
      `the token service ${url.host} is not at an https address; only with insecure are credentials sent in the clear`,
    )
  url.username = ''
  url.password = ''
  url.hash = ''
  if (service !== '') url.searchParams.set('service', service.slice(0, 1024))
  if (scope !== '') url.searchParams.set('scope', scope.slice(0, 1024))
  return url
}

function tokenOf(body: Buffer): string | undefined {
  const answer = parsed(body)
  const { token, access_token: accessToken } = (answer ?? {}) as { token?: unknown; access_token?: unknown }
  const found = [token, accessToken].find((text) => typeof text === 'string' && text !== '')
  // Only what can stand in a header line.
  return typeof found === 'string' && /^[\x21-\x7e]+$/.test(found) ? found : undefined
}

/** The JSON object of a body; undefined where it is none. */
export function parsed(body: Buffer): object | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined // what it is instead is of no use
  }
}
