import { describe, expect, it } from 'vitest'
import type { KubeClient } from '#kube'
import { type Clock, parseClusterName } from '#model'
import { Pulses } from './pulses.ts'
import { fakeCluster, kubeError } from './testing/fake-cluster.ts'

const west = parseClusterName('west')
const noPause: Clock = { now: Date.now, sleep: () => new Promise((resolve) => setTimeout(resolve, 1)) }

/** A cluster that answers its tests in this order, and well from then on. */
function following(answers: readonly ('well' | ReturnType<typeof kubeError>)[]) {
  const found: string[] = []
  let asked = 0
  const kube: KubeClient = {
    ...fakeCluster({}),
    ping: async () => {
      const answer = answers[asked++] ?? 'well'
      if (answer !== 'well') throw answer
    },
  }
  const pulses = new Pulses({ clock: noPause, onTrouble: (cluster) => found.push(cluster) })
  pulses.start()
  pulses.follow(west, kube)
  return { pulses, found, asked: () => asked }
}

async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 1))
}

describe('Pulses', () => {
  it.each([
    ['a cluster that is silent', [kubeError('timeout')], 'timeout'],
    ['one that is spared, as others met trouble there', [kubeError('breaker_open')], 'breaker_open'],
    ['one that is away twice in a row', [kubeError('unreachable'), kubeError('server')], 'server'],
  ] as const)('tell of %s, once, and ask it no more', async (_, answers, reason) => {
    const { pulses, found, asked } = following(['well', ...answers])
    await until(() => found.length > 0)
    const count = asked()
    expect(pulses.hasTrouble(west)).toBe(true)
    expect(pulses.takeTrouble(west)).toMatchObject({ reason })
    expect(pulses.takeTrouble(west)).toBeUndefined()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect([found, asked()]).toEqual([[west], count])
    await pulses.stop()
  })

  it.each([
    ['a moment in which it starts anew', [kubeError('unreachable'), 'well', kubeError('unreachable')]],
    [
      'a refusal, or a wish to be asked less',
      [kubeError('forbidden'), kubeError('unauthorized'), kubeError('throttled')],
    ],
    ['a client that we closed', [kubeError('closed'), kubeError('closed')]],
  ] as const)('leave %s to the rounds', async (_, answers) => {
    const { pulses, found, asked } = following(answers)
    await until(() => asked() > answers.length + 3)
    await pulses.stop()
    expect(found).toEqual([])
  })

  it('end with what follows a cluster, and forget what they found of it', async () => {
    const { pulses, found, asked } = following([kubeError('timeout')])
    await until(() => found.length > 0)
    pulses.leave(west)
    expect(pulses.takeTrouble(west)).toBeUndefined()
    await pulses.stop()
    pulses.follow(west, fakeCluster({}))
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(asked()).toBe(1)
  })
})
