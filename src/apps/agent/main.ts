#!/usr/bin/env node
import { codedMessage, FleetError } from '#model'
import { keepProcessSmall } from '#runtime'

try {
  keepProcessSmall()
  const { readAgentConfig, runAgent } = await import('./index.ts')
  const { config, warnings } = readAgentConfig(process.env)
  await runAgent({ config, warnings, version: process.env.CLUSTERPULSE_VERSION ?? '0.0.0-dev' })
} catch (error) {
  process.exitCode = 1
  const text = error instanceof FleetError ? codedMessage(error) : error instanceof Error ? error.stack : String(error)
  process.stderr.write(`clusterpulse-agent: ${text}\n`)
}
