import type { FastifyInstance } from 'fastify'
import { search } from '#http'
import { textBody } from '../bodies.ts'
import { fleetBody, type Parts, route } from '../route.ts'
import { searchFleet } from '../search-index.ts'

export function searchRoutes(app: FastifyInstance, parts: Parts): void {
  route(app, parts, search, (call) =>
    fleetBody(parts, search, call, (clusters) => {
      const { q, limit = 20 } = call.query
      return textBody(`${JSON.stringify({ ...searchFleet(clusters, q, limit), next: null, part: null })}\n`)
    }),
  )
}
