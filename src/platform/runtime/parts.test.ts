import { describe, expect, it } from 'vitest'
import { silentLogger } from './logger.ts'
import { type Part, startParts } from './parts.ts'

function recorded(calls: string[], name: string, fail?: 'start' | 'stop' | 'hang'): Part {
  return {
    name,
    async start() {
      calls.push(`start ${name}`)
      if (fail === 'start') throw new Error(`${name} cannot start`)
    },
    async stop() {
      calls.push(`stop ${name}`)
      if (fail === 'stop') throw new Error('no')
      if (fail === 'hang') await new Promise(() => undefined)
    },
  }
}

describe('startParts', () => {
  it('starts in order and stops in reverse', async () => {
    const calls: string[] = []
    const running = await startParts([recorded(calls, 'a'), recorded(calls, 'b')], { logger: silentLogger })
    await running.stop()
    await running.stop()
    expect(calls).toEqual(['start a', 'start b', 'stop b', 'stop a'])
  })

  it('stops what had started when a later part fails, and throws that failure', async () => {
    const calls: string[] = []
    const parts = [recorded(calls, 'a'), recorded(calls, 'b', 'start'), recorded(calls, 'c')]
    await expect(startParts(parts, { logger: silentLogger })).rejects.toThrow('b cannot start')
    expect(calls).toEqual(['start a', 'start b', 'stop b', 'stop a'])
  })

  it('goes on stopping when a part hangs or fails', async () => {
    const calls: string[] = []
    const parts = [recorded(calls, 'a'), recorded(calls, 'b', 'hang'), recorded(calls, 'c', 'stop')]
    const running = await startParts(parts, { logger: silentLogger, deadlineMs: 20 })
    await running.stop()
    expect(calls.slice(3)).toEqual(['stop c', 'stop b', 'stop a'])
  })
})
