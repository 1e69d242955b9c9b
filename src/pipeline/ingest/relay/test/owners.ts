import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OwnerPlace, ownerOf } from '#model'
import type { AgentServerOptions } from '../../stream/server.ts'
import { aHub, TestCredentials, type TestHub, TestPlans } from '../../stream/test/hub.ts'

export interface TestOwner extends TestHub {
  readonly place: OwnerPlace
}

export interface TestOwners extends AsyncDisposable {
  readonly owners: readonly TestOwner[]
  /** of the sockets */
  readonly directory: string
  readonly credentials: TestCredentials
  readonly plans: TestPlans
  ownerOf(cluster: string): TestOwner
  /** one that does not own the cluster */
  otherThan(cluster: string): TestOwner
  /** ends one and starts it again, empty, on a port of its own */
  again(index: number): Promise<TestOwner>
}

export type OwnersOptions = Partial<Omit<AgentServerOptions, 'others'>> & {
  readonly of?: number
  readonly clusters?: readonly string[]
}

/** Several owners of one fleet, each with log, state and port of its own; tokens are `<cluster>-token`. */
export async function someOwners({
  of = 2,
  clusters = ['west', 'east'],
  ...rest
}: OwnersOptions = {}): Promise<TestOwners> {
  const directory = await mkdtemp(join(tmpdir(), 'relay-'))
  const credentials = new TestCredentials()
  const plans = new TestPlans()
  for (const cluster of clusters) credentials.grant(`${cluster}-token`, cluster)
  const start = async (index: number): Promise<TestOwner> => {
    const place = { index, of }
    const hub = await aHub({
      clusters: clusters.filter((cluster) => ownerOf(cluster, of) === index),
      verifier: credentials,
      plans,
      others: { place, directory },
      ...rest,
    })
    return { ...hub, credentials, plans, place }
  }
  const owners: TestOwner[] = []
  for (let index = 1; index <= of; index++) owners.push(await start(index))
  const find = (is: (owner: TestOwner) => boolean): TestOwner => {
    const found = owners.find(is)
    if (!found) throw new Error('there is no such owner')
    return found
  }
  return {
    owners,
    directory,
    credentials,
    plans,
    ownerOf: (cluster) => find(({ place }) => place.index === ownerOf(cluster, of)),
    otherThan: (cluster) => find(({ place }) => place.index !== ownerOf(cluster, of)),
    async again(index) {
      await owners[index - 1]?.[Symbol.asyncDispose]()
      const owner = await start(index)
      owners[index - 1] = owner
      return owner
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(owners.map((owner) => owner[Symbol.asyncDispose]()))
      await rm(directory, { recursive: true, force: true })
    },
  }
}
