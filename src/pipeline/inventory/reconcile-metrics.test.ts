import { describe, expect, it } from 'vitest'
import { done } from '#controller'
import { KubeError } from '#kube'
import { Metrics, silentLogger } from '#runtime'
import { ReconcileMetrics } from './reconcile-metrics.ts'

const anAgent = (reconcile: () => Promise<typeof done>) => {
  const metrics = new Metrics({}, { processMetrics: false })
  const reconciles = new ReconcileMetrics(metrics)
  const controller = reconciles.controller('KollectTarget', {
    reconciler: { name: 'targets', reconcile },
    triggers: [],
    concurrency: 1,
    logger: silentLogger,
  })
  controller.start()
  return { controller, text: () => metrics.registry.metrics() }
}

describe('reconciles of inventory', () => {
  it('are counted by controller and result, and how long they took', async () => {
    const { controller, text } = anAgent(async () => done)
    controller.enqueue({ name: 'a' })
    await expect.poll(text).toContain('kollect_reconcile_total{controller="targets",result="success"} 1')
    expect(await text()).toContain('kollect_reconcile_duration_seconds_count{controller="targets"} 1')
    await controller.stop()
  })

  it.each([
    [new KubeError('forbidden', 'no'), 'forbidden'],
    [new KubeError('invalid', 'no'), 'terminal'],
    [new KubeError('unreachable', 'no'), 'transient'],
    [new Error('no'), 'transient'],
  ])('that fail are counted by kind and class (%s)', async (error, errorClass) => {
    const { controller, text } = anAgent(() => Promise.reject(error))
    controller.enqueue({ name: 'a' })
    await expect.poll(text).toMatch(`kollect_reconcile_errors_total{kind="KollectTarget",error_class="${errorClass}"} `)
    expect(await text()).toContain('kollect_reconcile_total{controller="targets",result="error"}')
    await controller.stop()
  })

  it('that wait for a worker are the depth of the queue; what is worked on is not', async () => {
    let release: () => void = () => undefined
    const held = new Promise<typeof done>((resolve) => {
      release = () => resolve(done)
    })
    const { controller, text } = anAgent(() => held)
    for (const name of ['a', 'b', 'c']) controller.enqueue({ name })
    await expect.poll(text).toContain('kollect_workqueue_depth{controller="targets"} 2')
    release()
    await expect.poll(text).toContain('kollect_workqueue_depth{controller="targets"} 0')
    await controller.stop()
  })
})
