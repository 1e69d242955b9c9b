import type { FastifyInstance } from 'fastify'
import { search } from '#http'
import type { Steps } from '#runtime'
import { type Body, textBody } from '../bodies.ts'
import { type Parts, route } from '../route.ts'
import { searchFleet } from '../search-index.ts'
import { fleetOfTypes } from './types.ts'

function* searchBody(search: ReturnType<typeof searchFleet>): Steps<Body> {
  const found = yield* search
  return textBody(`${JSON.stringify({ ...found, next: null, part: null })}\n`)
}

export function searchRoutes(app: FastifyInstance, parts: Parts): void {
  route(app, parts, search, (call) =>
    fleetOfTypes(parts, search, call, (accessView, clusters) => {
      const { q, limit = 20 } = call.query
      // Snapshots are in the index of their cluster; events are called after what they are about, which is found itself.
      const kinds = parts.types.kinds().filter(({ access }) => access !== 'snapshot' && access !== 'events')
      const seen = clusters.flatMap(({ state }) =>
        kinds.flatMap((source) => parts.types.on(accessView, state, source) ?? []),
      )
      return searchBody(searchFleet(clusters, seen, q, limit))
    }),
  )
}
