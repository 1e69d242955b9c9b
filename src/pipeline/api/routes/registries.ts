import type { FastifyInstance } from 'fastify'
import { getRegistry, listRegistries, type RegistryDetailView, type RegistryView, v1RegistriesStatus } from '#http'
import { documentTime } from '#model'
import type { SeenRegistry } from '#registry'
import { registries as kind } from '#resources'
import { type Body, textBody } from '../bodies.ts'
import type { RegistryRows } from '../fleet-rows.ts'
import { RefusedError } from '../problem.ts'
import { type AnyCall, accessViewOf, type Parts, questionOf, route } from '../route.ts'

/** Container registries, as far as policies show them. */
export function registryRoutes(app: FastifyInstance, parts: Parts, registries: RegistryRows): void {
  /** Encoded once per version and access view, until somebody falls silent. */
  function listed(name: string, { request, now }: AnyCall, encode: (seen: readonly SeenRegistry[]) => unknown): Body {
    const accessView = accessViewOf(request)
    const key = questionOf(name, accessView.fingerprint, null)
    const tag = registries.version()
    const known = parts.bodies.get(key, tag, now)
    if (known) return known
    const body = textBody(`${JSON.stringify(encode(registries.seen(accessView)))}\n`)
    parts.bodies.set(key, { tag, validUntil: Math.min(accessView.validUntil, registries.turnsAt(now)) }, body)
    return body
  }

  route(app, parts, listRegistries, (call) => ({
    body: listed('listRegistries', call, (seen) => ({ items: registryViews(seen) })),
  }))

  route(app, parts, v1RegistriesStatus, (call) => ({
    body: listed('v1RegistriesStatus', call, (seen) => seen.map(registryDocument)),
  }))

  route(app, parts, getRegistry, ({ request, params }) => {
    const found = registries.named(accessViewOf(request), params.name)
    const resource = `registry ${params.name}`
    // To the caller hidden and absent are one; to the audit they are not.
    request.auditNote =
      found === 'hidden' ? { kind: 'denial', resource, reason: 'the registry is hidden' } : { resource }
    if (!found || found === 'hidden') throw registryNotFound(params.name)
    const measurements = found.measurements.map(
      ({ at, responseMs, available }): RegistryDetailView['measurements'][number] => [at, responseMs, available],
    )
    return { body: textBody(`${JSON.stringify({ ...registryViews([found])[0], measurements })}\n`) }
  })
}

const registryNotFound = (name: string): RefusedError =>
  new RefusedError('registry_not_found', `there is no registry ${JSON.stringify(name)} that you may see`)

/** Their rows, with the empty text for words that are not known. */
function registryViews(seen: readonly SeenRegistry[]): readonly RegistryView[] {
  return [...kind.tableOf(seen).rows()].map(({ name, labels, values }) => {
    const { version, code, error } = values
    const view = { name, labels, ...values, version: version ?? '', code: code ?? '', error: error ?? '' }
    return view as unknown as RegistryView // the kind has a column for each property
  })
}

/** The documented form. That there is a Secret is nobody's business, and its name is left out. */
function registryDocument({ facts, last, health, message, stale }: SeenRegistry) {
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
    status: last
      ? {
          available: last.available,
          response_time: Math.round(last.responseMs ?? 0),
          version: last.version,
          repository_count: last.repositoryCount ?? 0,
          features: last.features,
          repositories: last.repositories,
          last_check: documentTime(last.at),
          ...(last.error !== '' && { error: last.error }),
          health,
          message,
          phase: last.available ? 'Connected' : 'Error',
          stale,
        }
      : {},
  }
}
