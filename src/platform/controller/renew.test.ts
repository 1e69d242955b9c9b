import { expect, it } from 'vitest'
import type { KubeClient, KubeObject, Resource, WatchEvent } from '#kube'
import { silentLogger } from '#runtime'
import { Informer } from './informer.ts'

const one = (name: string, resourceVersion: string): KubeObject => ({ metadata: { name, uid: name, resourceVersion } })

/** A source that lists once and then gives what it is told to. */
function scripted() {
  const runs: { list(...items: KubeObject[]): void; give(event: WatchEvent<KubeObject>): void; isOver: boolean }[] = []
  const source = async function* ({
    signal,
  }: {
    readonly signal: AbortSignal
  }): AsyncGenerator<WatchEvent<KubeObject>> {
    const waiting: WatchEvent<KubeObject>[] = []
    let wake: () => void = () => undefined
    const give = (event: WatchEvent<KubeObject>) => {
      waiting.push(event)
      wake()
    }
    const run = {
      list: (...items: KubeObject[]) => give({ type: 'reset', items, resourceVersion: '9' }),
      ...{ give, isOver: false },
    }
    runs.push(run)
    signal.addEventListener('abort', () => wake())
    try {
      while (!signal.aborted || waiting.length > 0) {
        const next = waiting.shift()
        if (next) yield next
        else await new Promise<void>((resolve) => (wake = resolve))
      }
    } finally {
      run.isOver = true
    }
  }
  return { runs, source }
}

it('an informer that is renewed knows what is listed from then on, and nothing of what was under way', async () => {
  const { runs, source } = scripted()
  const resource = { plural: 'things', fromJson: (object) => object } as Resource<KubeObject>
  const options = { kube: {} as KubeClient, resource, sources: [source], logger: silentLogger }
  await using informer = new Informer<KubeObject>(options)
  const told: string[] = []
  informer.onChange(({ kind, key }) => told.push(`${kind} ${key.name}`))
  informer.start()
  await expect.poll(() => runs.length).toBe(1)
  runs[0]?.list(one('a', '1'))
  await informer.synced()
  let isIn = false
  const renewed = informer.renew().then(() => {
    isIn = true
  })
  // The former watch is late.
  runs[0]?.give({ type: 'added', object: one('late', '2') })
  await expect.poll(() => runs.length).toBe(2)
  expect([isIn, informer.isCurrent, informer.trouble]).toEqual([false, true, undefined])
  runs[1]?.list(one('a', '1'), one('b', '3'))
  await renewed
  expect(told).toEqual(['added a', 'added b'])
  await expect.poll(() => runs[0]?.isOver).toBe(true)
  // Whoever waits is let go.
  const never = informer.renew()
  await informer.stop()
  await never
})
