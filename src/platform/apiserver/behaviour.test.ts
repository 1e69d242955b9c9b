import { afterAll, beforeAll, describe } from 'vitest'
import { accessBehaviour } from './behaviour/access.ts'
import { definitionBehaviour } from './behaviour/definitions.ts'
import { documentBehaviour } from './behaviour/documents.ts'
import { listBehaviour } from './behaviour/lists.ts'
import { objectBehaviour } from './behaviour/objects.ts'
import { type Subject, subjects } from './behaviour/subject.ts'
import { watchBehaviour } from './behaviour/watches.ts'

for (const { name, skip, start } of subjects)
  describe.skipIf(skip)(`the API, ${name}${skip ? ` (${skip})` : ''}`, () => {
    let running: Subject
    beforeAll(async () => {
      running = await start()
    })
    afterAll(async () => {
      await running[Symbol.asyncDispose]()
    })
    const subject = () => running
    objectBehaviour(subject)
    listBehaviour(subject)
    watchBehaviour(subject)
    definitionBehaviour(subject)
    documentBehaviour(subject)
    accessBehaviour(subject)
  })
