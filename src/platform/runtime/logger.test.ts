import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'

/** Standard error of a process that says one line. */
function said(statement: string): Record<string, unknown> {
  const program = `
    import { createLogger } from './src/platform/runtime/logger.ts'
    import { StoreUnavailableError } from '#model'
    const logger = createLogger('info', { role: 'test' })
    const signal = AbortSignal.abort(new DOMException('stopped by a timeout', 'TimeoutError'))
    ${statement}
  `
  const { stderr } = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  const line = stderr.split('\n').find((text) => text.startsWith('{'))
  if (line === undefined) throw new Error(`it said nothing: ${stderr}`)
  return JSON.parse(line)
}

describe('a line of the log', { timeout: 30_000 }, () => {
  it('is written whatever error is among its facts: one of the platform, with causes, in a circle', () => {
    expect(said(`logger.warn({ error: signal.reason }, 'too late')`)).toMatchObject({
      msg: 'too late',
      error: { name: 'TimeoutError', message: expect.stringMatching(/timeout/) as string },
    })
    expect(
      said(`
        const inner = new Error('inner', { cause: signal.reason })
        const error = new StoreUnavailableError('Redis', 'gone', { cause: inner })
        inner.cause.cause = error
        logger.warn({ error, token: 'secret' }, 'away')
      `),
    ).toMatchObject({
      token: '[secret]',
      error: {
        name: 'StoreUnavailableError',
        code: 'store_unavailable',
        message: 'Redis is not available: gone',
        cause: { message: 'inner', cause: { name: 'TimeoutError' } },
      },
    })
  })

  it('says a text that stands for an error as it is', () => {
    expect(said(`logger.info({ error: 'nobody answers' }, 'away')`)).toMatchObject({ error: 'nobody answers' })
  })
})
