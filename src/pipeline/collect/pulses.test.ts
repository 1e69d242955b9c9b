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
  const recovered: string[] = []
  const anyway: boolean[] = []
  let asked = 0
  const kube: KubeClient = {
    ...fakeCluster({}),
    ping: async (_, isAnyway = false) => {
      anyway.push(isAnyway)
      const answer = answers[asked++] ?? 'well'
      if (answer !== 'well') throw answer
    },
  }
  const pulses = new Pulses({
    clock: noPause,
    onTrouble: (cluster) => found.push(cluster),
    onRecovered: (cluster) => recovered.push(cluster),
  })
  pulses.start()
  pulses.follow(west, kube)
  return { pulses, kube, found, recovered, anyway, asked: () => asked }
}

async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 1))
}

describe('Pulses', () => {
  it.each([
    ['a cluster that is silent', [kubeError('timeout')], 'timeout'],
    ['one that is spared, as others met trouble there', [kubeError('breaker_open')], 'breaker_open'],
    ['one that is away twice in a row', [kubeError('unreachable'), kubeError('server')], 'server'],
  ] as const)('tell of %s, once, and once more when it answers', async (_, answers, reason) => {
    const still = [kubeError('unreachable'), kubeError('timeout')]
    const { pulses, found, recovered, anyway, asked } = following(['well', ...answers, ...still])
    await until(() => found.length > 0)
    expect(pulses.hasTrouble(west)).toBe(true)
    expect(pulses.takeTrouble(west)).toMatchObject({ reason })
    expect(pulses.takeTrouble(west)).toBeUndefined()
    await until(() => recovered.length > 0)
    const count = 1 + answers.length + still.length + 1
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect([found, recovered, asked()]).toEqual([[west], [west], count])
    // No breaker keeps from them that it is over.
    expect(anyway).toEqual([...Array(1 + answers.length).fill(false), ...Array(3).fill(true)])
    await pulses.stop()
  })

  it('take a refusal for an answer, and begin anew with the next round that succeeds', async () => {
    const answers = [kubeError('timeout'), kubeError('forbidden'), 'well', kubeError('timeout')] as const
    const { pulses, kube, found, recovered } = following(answers)
    await until(() => recovered.length === 1)
    pulses.follow(west, kube)
    await until(() => recovered.length === 2)
    expect(found).toEqual([west, west])
    await pulses.stop()
  })

  it('wait no more for one whose round succeeded meanwhile', async () => {
    const away = Array.from({ length: 1000 }, () => kubeError('timeout'))
    const { pulses, found, recovered } = following(away)
    await until(() => found.length > 0)
    pulses.follow(west, { ...fakeCluster({}), ping: async () => undefined })
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect([found, recovered]).toEqual([[west], []])
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
