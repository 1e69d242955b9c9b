import { isDeepStrictEqual } from 'node:util'
import { type Condition, setCondition } from '#controller'
import type { Question } from '#credentials'
import type { AcceptedCredentials, RegistryConnectionStatus } from '#kinds'
import { minutes } from '#model'
import type { ProbeResult, RegistryTarget } from '#registry'
import type { Credentials } from './target.ts'

export interface StatusInputs {
  readonly stored: RegistryConnectionStatus | undefined
  readonly generation: number | undefined
  readonly target: RegistryTarget
  /** undefined: none are wanted */
  readonly credentials: Credentials | undefined
  /** notes where they were accepted; called where they were just now */
  readonly accept: (question: Question) => AcceptedCredentials
  /** undefined: the first probe is yet to come */
  readonly result: ProbeResult | undefined
  readonly adjustments: readonly string[]
  /** ms since the Unix epoch */
  readonly now: number
}

/** What only moves is written no more often than this. */
const MOVES_EVERY_MS = minutes(1)
/** Of what moves with every probe; the message holds the response time. */
const MOVING = new Set(['lastCheckTime', 'responseTime', 'message'])

/** Decides the status of a RegistryConnection. @returns a merge patch; undefined: nothing is to be written */
export function statusPatch(inputs: StatusInputs): Readonly<Record<string, unknown>> | undefined {
  const stored = (inputs.stored ?? {}) as Readonly<Record<string, unknown>>
  // What was found last stands until the next probe has ended.
  if (!inputs.result && stored.phase !== undefined) return undefined
  const wanted = statusOf(inputs)
  const differing = Object.keys(wanted).filter((field) => !isSame(stored[field], wanted[field]))
  if (differing.length === 0) return undefined
  const isMaterial = differing.some((field) => !MOVING.has(field))
  const checkedAt = Date.parse(String(stored.lastCheckTime))
  const isDue = Number.isNaN(checkedAt) || inputs.now - checkedAt >= MOVES_EVERY_MS
  if (!isMaterial && !isDue) return undefined
  return Object.fromEntries(differing.map((field) => [field, replacing(stored[field], wanted[field])]))
}

/** null takes a field away, so it equals one that is not there. */
const isSame = (stored: unknown, wanted: unknown): boolean => isDeepStrictEqual(stored ?? null, wanted)

/** A merge patch adds to a map: what is to go is named. */
function replacing(stored: unknown, wanted: unknown): unknown {
  if (!isMap(stored) || !isMap(wanted)) return wanted
  const gone = Object.keys(stored).filter((key) => !(key in wanted))
  return { ...wanted, ...Object.fromEntries(gone.map((key) => [key, null])) }
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function statusOf(inputs: StatusInputs): Readonly<Record<string, unknown>> {
  const conditions = conditionsOf(inputs)
  const { result, credentials, stored } = inputs
  if (!result) return { phase: 'Connecting', health: 'unknown', conditions }
  const isAccepted = conditions.some(({ type, status }) => type === 'CredentialsValid' && status === 'True')
  const accepted =
    isAccepted && credentials?.kind === 'found' ? inputs.accept(credentials.question) : stored?.credentials
  return {
    available: result.available,
    phase: result.available ? 'Connected' : 'Error',
    health: result.health,
    lastCheckTime: rfc3339(result.at),
    responseTime: result.responseMs === null ? null : Math.round(result.responseMs),
    message: result.message.slice(0, 4000),
    repositoryCount: result.repositoryCount,
    version: result.version === '' ? null : result.version,
    features: result.features,
    ...(accepted && { credentials: accepted }),
    conditions,
  }
}

type Said = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

function conditionsOf(inputs: StatusInputs): readonly Condition[] {
  const { stored, generation, now, result } = inputs
  const said = [
    ...(result ? verdict(result) : [connecting]),
    ...credentialsSaid(inputs),
    ...tls(inputs),
    ...notes(inputs),
  ]
  const kept = ((stored?.conditions ?? []) as readonly Condition[]).filter(({ type }) =>
    said.some((condition) => condition.type === type),
  )
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  return said.reduce<readonly Condition[]>(
    (list, condition) =>
      setCondition(list, { ...condition, message: condition.message.slice(0, 4000), ...observed }, now),
    kept,
  )
}

const connecting: Said = { type: 'Ready', status: 'Unknown', reason: 'Connecting', message: 'first probe' }

function verdict(result: ProbeResult): Said[] {
  const { available, health, code, error, warnings, responseMs } = result
  const noticed = warnings.map(({ message }) => message).join('; ')
  const ready: Said = available
    ? {
        type: 'Ready',
        status: 'True',
        reason: health === 'healthy' ? 'Available' : 'Degraded',
        message: noticed || (health === 'healthy' ? 'it answers as a registry does' : 'it answers slowly'),
      }
    : { type: 'Ready', status: 'False', reason: camel(code), message: error }
  const reachable: Said =
    responseMs === null
      ? { type: 'Reachable', status: 'False', reason: camel(code), message: error }
      : { type: 'Reachable', status: 'True', reason: 'Answered', message: 'it answers' }
  return [ready, reachable]
}

/** Warnings of a probe that speak of what was sent to sign in. */
const SIGN_IN = new Set([
  'unauthorized',
  'token_failed',
  'sign_in_failed',
  'sign_in_unknown',
  'redirected',
  'redirect_refused',
])

function credentialsSaid({ credentials, result }: StatusInputs): Said[] {
  if (!credentials) return []
  const type = 'CredentialsValid'
  if (credentials.kind === 'lacking') {
    const { reason, message, held } = credentials
    if (!held) return [{ type, status: 'False', reason, message }]
    return [
      { type, status: 'Unknown', reason, message },
      { type: 'CredentialsHeld', status: 'True', reason: held.reason, message },
    ]
  }
  const trouble = result?.warnings.find(({ code }) => SIGN_IN.has(code))
  if (trouble?.code === 'unauthorized') return [{ type, status: 'False', reason: 'Refused', message: trouble.message }]
  if (trouble) return [{ type, status: 'Unknown', reason: camel(trouble.code), message: trouble.message }]
  if (!result?.available)
    return [
      { type, status: 'Unknown', reason: 'NotTried', message: 'the registry has not answered since they were read' },
    ]
  // One that answers everybody takes them as well, and does not say that it never looked at them.
  const message = result.features.requires_auth ? 'the registry accepts them' : 'the registry answers with them'
  return [{ type, status: 'True', reason: 'Accepted', message }]
}

function tls({ target, result }: StatusInputs): Said[] {
  const type = 'TLSVerified'
  if (target.endpoint.startsWith('http:')) {
    const message = 'plain HTTP, by choice: anyone in between can read and change everything'
    return [{ type, status: 'False', reason: 'PlainHttp', message }]
  }
  if (target.skipTlsVerify) {
    const message = 'the certificate is not verified, by choice: anyone in between can read the credentials'
    return [{ type, status: 'False', reason: 'SkippedByChoice', message }]
  }
  if (result?.code === 'tls_untrusted') return [{ type, status: 'False', reason: 'Untrusted', message: result.error }]
  if (!result || result.responseMs === null) return []
  return [{ type, status: 'True', reason: 'Verified', message: 'the certificate is verified' }]
}

function notes({ adjustments }: StatusInputs): Said[] {
  if (adjustments.length === 0) return []
  return [{ type: 'SpecAdjusted', status: 'True', reason: 'OutOfRange', message: adjustments.join('; ') }]
}

/** `not_a_registry` → `NotARegistry`: reasons of conditions are in CamelCase. */
const camel = (code: string): string =>
  code
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('') || 'Failed'

const rfc3339 = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
