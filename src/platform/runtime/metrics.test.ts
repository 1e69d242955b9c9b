import { describe, expect, it } from 'vitest'
import { Metrics, metricsText } from './metrics.ts'

describe('metrics of several processes on one page', () => {
  it('stand beside each other under the label of their process, each family once', async () => {
    const [one, two] = ['owner-1', 'owner-2'].map((process) => new Metrics({ process }, { processMetrics: false }))
    const manager = new Metrics({ role: 'manager' })
    one?.counter('taken_total', 'Taken.', ['what']).inc({ what: 'a' }, 3)
    two?.counter('taken_total', 'Taken.', ['what']).inc({ what: 'a' }, 4)
    two?.gauge('open', 'Open.', [], (gauge) => gauge.set(7))
    one?.histogram('took_seconds', 'Took.', [], [1, 2]).observe(1.5)
    const moments = await Promise.all([manager, one, two].map((metrics) => metrics?.moment() ?? []))
    // As they come from another process.
    const text = await metricsText(JSON.parse(JSON.stringify(moments)))
    expect(text).toContain('taken_total{what="a",process="owner-1"} 3')
    expect(text).toContain('taken_total{what="a",process="owner-2"} 4')
    expect(text).toContain('open{process="owner-2"} 7')
    expect(text).toContain('took_seconds_bucket{le="2",process="owner-1"} 1')
    expect(text).toMatch(/process_start_time_seconds\{role="manager"\} \d+/)
    expect(text.match(/# TYPE taken_total counter/g)).toHaveLength(1)
  })
})
