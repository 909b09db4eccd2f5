// dynalite throws when a client dies in the middle of a request, which would end the server with it.
'use strict'
process.on('uncaughtException', (error) => {
  if (error.code === 'ECONNRESET') return
  console.error(error)
  process.exit(1)
})
