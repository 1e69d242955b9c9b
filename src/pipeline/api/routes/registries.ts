import type { FastifyInstance } from 'fastify'
import type { AccessView } from '#access'
import { getRegistry, listRegistries, type RegistryDetailView, type RegistryView, v1RegistriesStatus } from '#http'
import type { Clock } from '#model'
import { documentTime } from '#model'
import { type RegistryReader, type RegistryState, staleAt } from '#registry'
import { type Body, textBody } from '../bodies.ts'
import { RefusedError } from '../problem.ts'
import { accessViewOf, type Parts, route } from '../route.ts'

export interface RegistryRoutesOptions {
  /** absent: this hub watches no registries, and every list is empty */
  readonly registries: RegistryReader | undefined
  /** how long a lost store is answered from memory, ms */
  readonly storeGraceMs: number
}

/** Measurements that a list shows of each. */
const RECENT = 30

type Encode = (seen: readonly RegistryState[], accessView: AccessView) => string

/** Container registries, as far as policies show them. */
export function registryRoutes(
  app: FastifyInstance,
  parts: Parts,
  { registries, storeGraceMs }: RegistryRoutesOptions,
): void {
  const reader = (): RegistryReader | undefined => {
    if (registries) requireCurrent(registries, parts.clock, storeGraceMs)
    return registries
  }

  const recentOf = ({ facts }: RegistryState): RegistryView['recent'] =>
    (registries?.measurements(facts.name) ?? [])
      .slice(-RECENT)
      .map(({ available, responseMs }) => (available ? responseMs : null))

  /** Encoded once per version and access view, until somebody falls silent. */
  function listed(name: string, accessView: AccessView, now: number, encode: Encode): Body {
    const found = reader()
    const key = `${name} ${accessView.fingerprint}`
    const tag = found?.version() ?? 0
    const known = parts.bodies.get(key, tag, now)
    if (known) return known
    const seen = (found?.registries() ?? []).filter((registry) => isShown(accessView, registry))
    const body = textBody(`${encode(seen, accessView)}\n`)
    parts.bodies.set(key, { tag, validUntil: Math.min(accessView.validUntil, turnOf(seen, now)) }, body)
    return body
  }

  route(app, parts, listRegistries, ({ request, now }) => ({
    body: listed('listRegistries', accessViewOf(request), now, (seen, accessView) =>
      JSON.stringify({
        items: seen.map((registry) => ({ ...registryView(registry, accessView, now), recent: recentOf(registry) })),
      }),
    ),
  }))

  route(app, parts, v1RegistriesStatus, ({ request, now }) => ({
    body: listed('v1RegistriesStatus', accessViewOf(request), now, (seen, accessView) =>
      JSON.stringify(seen.map((registry) => registryDocument(registry, accessView, now))),
    ),
  }))

  route(app, parts, getRegistry, ({ request, params, now }) => {
    const found = reader()
    const registry = found?.registry(params.name)
    // Asked in both cases, so that hidden and absent take the same way.
    const accessView = accessViewOf(request)
    const shown = isShown(accessView, registry ?? nobody(params.name))
    const resource = `registry ${params.name}`
    // To the caller hidden and absent are one; to the audit they are not.
    request.auditNote =
      registry && !shown ? { kind: 'denial', resource, reason: 'the registry is hidden' } : { resource }
    if (!found || !registry || !shown) throw registryNotFound(params.name)
    const measurements = found
      .measurements(params.name)
      .map(({ at, responseMs, available }): RegistryDetailView['measurements'][number] => [at, responseMs, available])
    const view = { ...registryView(registry, accessView, now), recent: recentOf(registry), measurements }
    return { body: textBody(`${JSON.stringify(view satisfies RegistryDetailView)}\n`) }
  })
}

const registryNotFound = (name: string): RefusedError =>
  new RefusedError('registry_not_found', `there is no registry ${JSON.stringify(name)} that you may see`)

function requireCurrent(registries: RegistryReader, clock: Clock, graceMs: number): void {
  const lost = registries.unavailable()
  if (!lost || clock.now() - lost.since <= graceMs) return
  throw new RefusedError('store_unavailable', 'the store behind the hub does not answer', { retryAfterSeconds: 5 })
}

type Shown = Pick<RegistryState, 'facts'> | { readonly facts: { readonly name: string; readonly labels: object } }

const isShown = (accessView: AccessView, { facts }: Shown): boolean =>
  accessView.showsRegistry({ name: facts.name, labels: facts.labels as Readonly<Record<string, string>> })

const noLabels: Readonly<Record<string, string>> = {}
const nobody = (name: string) => ({ facts: { name, labels: noLabels } })

/** When time alone makes one of them stale, ms. */
function turnOf(seen: readonly RegistryState[], now: number): number {
  return Math.min(...seen.map(staleAt).filter((at) => at > now), Number.POSITIVE_INFINITY)
}

/** As it is at this moment: a health that nobody has confirmed for so long is not known, whatever it was. */
function registryView(registry: RegistryState, accessView: AccessView, now: number): Omit<RegistryView, 'recent'> {
  const { facts, last, since } = registry
  const stale = now >= staleAt(registry)
  const say = (text: string) => (accessView.administrator ? text : withoutSecret(text, registry))
  return {
    name: facts.name,
    displayName: facts.displayName,
    endpoint: facts.endpoint,
    type: facts.type,
    labels: { ...facts.labels },
    skipTlsVerify: facts.skipTlsVerify,
    insecure: facts.insecure,
    intervalMs: facts.intervalMs,
    health: last && !stale ? last.health : 'unknown',
    message: say(messageOf(registry, stale)),
    available: last?.available ?? null,
    since,
    checkedAt: last?.at ?? null,
    stale,
    responseMs: last?.responseMs ?? null,
    version: last?.version ?? '',
    features: { ...last?.features },
    repositoryCount: last?.repositoryCount ?? null,
    repositories: last?.repositories ? [...last.repositories] : null,
    catalogTruncated: last?.isCatalogTruncated ?? false,
    code: last?.code ?? '',
    error: say(last?.error ?? ''),
    warnings: (last?.warnings ?? []).map(({ code, message }) => ({ code, message: say(message) })),
  }
}

/** Where credentials lie is for those who may change that. */
function withoutSecret(text: string, { facts: { credentialsRef } }: RegistryState): string {
  return credentialsRef ? text.replaceAll(` of Secret ${credentialsRef.namespace}/${credentialsRef.name}`, '') : text
}

function messageOf({ last }: RegistryState, stale: boolean): string {
  if (!last) return 'Registry was not checked yet'
  return stale ? `no news since ${documentTime(last.at)}; before that: ${last.message}` : last.message
}

/** The documented form. That there is a Secret is nobody's business, and its name is left out. */
function registryDocument(registry: RegistryState, accessView: AccessView, now: number) {
  const { facts, last } = registry
  return {
    name: facts.name,
    spec: {
      display_name: facts.displayName,
      endpoint: facts.endpoint,
      type: facts.type,
      insecure: facts.insecure,
      skip_tls: facts.skipTlsVerify,
      labels: facts.labels,
      monitoring: {
        interval: Math.round(facts.intervalMs / 1000),
        timeout: Math.round(facts.timeoutMs / 1000),
        check_catalog: facts.checkCatalog,
        max_catalog_entries: facts.catalogPageSize ?? -1,
      },
    },
    status: last ? statusDocument(registryView(registry, accessView, now), last) : {},
  }
}

function statusDocument(
  { health, message, error, stale }: ReturnType<typeof registryView>,
  last: NonNullable<RegistryState['last']>,
) {
  return {
    available: last.available,
    response_time: Math.round(last.responseMs ?? 0),
    version: last.version,
    repository_count: last.repositoryCount ?? 0,
    features: last.features,
    repositories: last.repositories,
    last_check: documentTime(last.at),
    ...(error !== '' && { error }),
    health,
    message,
    phase: last.available ? 'Connected' : 'Error',
    stale,
  }
}
