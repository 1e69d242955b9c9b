import { Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { PageOf, SearchHitSchema } from './views.ts'

export const search = {
  method: 'GET',
  url: '/api/v2/search',
  access: 'filtered',
  schema: {
    operationId: 'search',
    summary:
      'Clusters, nodes, namespaces, operators and rows of every type by name, best first; of rows up to five million are looked at, types that would exceed that are passed over',
    querystring: Type.Object({
      q: Type.String({ maxLength: 200, description: 'words; each must occur' }),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
    }),
    response: PageOf(SearchHitSchema),
  },
} as const satisfies RouteContract
