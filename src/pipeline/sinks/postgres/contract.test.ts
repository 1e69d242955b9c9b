import { afterAll, beforeAll } from 'vitest'
import { sinkContract } from '../testing/contract.ts'
import { onPostgres, postgresMissing, startPostgres, type TestPostgres } from '../testing/postgres-server.ts'
import { aPlace } from './testing/places.ts'

let server: TestPostgres
beforeAll(async () => {
  if (!postgresMissing) server = await startPostgres()
})
afterAll(() => server?.[Symbol.asyncDispose]())

sinkContract(onPostgres('a table of PostgreSQL'), {
  missing: postgresMissing,
  harness: async () => {
    const place = await aPlace(server)
    return {
      open: async (cluster) => place.sink(cluster),
      read: place.read,
      writes: () => place.version(),
    }
  },
})
