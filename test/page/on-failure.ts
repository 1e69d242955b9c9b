import { afterEach } from 'vitest'
import { takeWords } from '../../web/testing/browser.ts'

afterEach(async ({ task }) => {
  const words = await takeWords()
  if (task.result?.state === 'fail')
    for (const page of words) process.stdout.write(`what was on the page when "${task.name}" failed: ${page}\n\n`)
})
