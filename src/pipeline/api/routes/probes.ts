import type { FastifyInstance } from 'fastify'
import { healthz, metrics, openApi, openApiDocument, readyz, routes } from '#http'
import type { Metrics } from '#runtime'
import type { Availability } from '#state'
import { type Body, textBody } from '../bodies.ts'
import { type Parts, route } from '../route.ts'

export interface ProbeFacts {
  readonly version: string
  readonly metrics: Metrics
  readonly readiness: Readonly<Record<string, () => string | undefined>>
}

/** Does it live, can it answer, what does it measure, what does it offer. */
export function probeRoutes(
  app: FastifyInstance,
  parts: Parts,
  { version, metrics: { registry }, readiness }: ProbeFacts,
): void {
  route(app, parts, healthz, () => ({ fresh: { status: 'ok', version } }))

  route(app, parts, readyz, ({ query }) => {
    const availability = parts.state.availability()
    const faults: Record<string, string | undefined> = {
      state: availability.state === 'available' ? undefined : stateFault(availability),
    }
    for (const [name, check] of Object.entries(readiness)) faults[name] = check()
    const ready = Object.values(faults).every((fault) => fault === undefined)
    const checks = Object.fromEntries(Object.entries(faults).map(([name, fault]) => [name, fault ?? 'ok']))
    const verbose = query.verbose !== undefined && query.verbose !== 'false'
    return {
      status: ready ? 200 : 503,
      fresh: {
        status: ready ? 'ready' : 'not ready',
        version,
        ...(!ready && { error: Object.values(faults).find((fault) => fault !== undefined) }),
        ...(verbose && { checks }),
      },
    }
  })

  route(app, parts, metrics, async ({ reply }) => {
    const text = withoutNames(await registry.metrics())
    await reply.type(registry.contentType).header('cache-control', 'no-store').send(text)
    return 'sent' as const
  })

  // Made for the first who asks: to make it is a third of what a server needs to start.
  let description: Body | undefined
  route(app, parts, openApi, () => {
    description ??= textBody(`${JSON.stringify(openApiDocument(routes, version))}\n`)
    return { body: description }
  })
}

/**
 * Whoever reaches the port reads the measurements, so they count and name nobody: a line whose label would name a thing of the
 * fleet or a person is not sent. No part of ours has such labels; this holds for those to come.
 */
const withoutNames = (text: string): string =>
  text
    .split('\n')
    .filter((line) => line.startsWith('#') || !naming.test(line))
    .join('\n')
const naming = /[{,](cluster|node|namespace|operator|name|user|username|email|group|policy|address|peer)="/

// The reason may name hosts of the inside; whoever probes needs only to know that it is not us.
function stateFault(availability: Exclude<Availability, { readonly state: 'available' }>): string {
  if (availability.state === 'loading' && availability.missing !== undefined) return availability.missing
  return availability.state === 'loading' ? 'state is loading' : 'store unavailable'
}
