// bundle.mjs SOURCES FOLDER OUTPUT: the page in SOURCES, with the packages in FOLDER/node_modules, as C++ in OUTPUT.
import {createRequire} from 'node:module';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

const [, , sources, folder, output] = process.argv;
const esbuild = createRequire(join(folder, 'package.json'))('esbuild');

const bundled = await esbuild.build({
    absWorkingDir: sources,
    entryPoints: {page: 'src/main.jsx'},
    outdir: folder,
    nodePaths: [join(folder, 'node_modules')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['chrome100', 'firefox100', 'safari15'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    legalComments: 'inline',
    logLevel: 'info',
});

const files = [{path: '/', type: 'text/html; charset=utf-8', bytes: readFileSync(join(sources, 'src/page.html'))}];
for (const file of bundled.outputFiles) {
    const isScript = file.path.endsWith('.js');
    const type = isScript ? 'text/javascript; charset=utf-8' : 'text/css; charset=utf-8';
    files.push({path: isScript ? '/page.js' : '/page.css', type, bytes: Buffer.from(file.contents)});
}

let text = '// Made by adapters/console/page/bundle.mjs.\n#include "serve/page.h"\n\nnamespace varve::console::serve {\n\nnamespace {\n\n';
files.forEach((file, i) => {
    // Signed, as char may be.
    const numbers = Array.from(file.bytes, (byte) => (byte > 127 ? byte - 256 : byte));
    text += `constexpr signed char page_file_${i}[] = {`;
    for (let at = 0; at < numbers.length; at += 40) text += '\n    ' + numbers.slice(at, at + 40).join(',') + ',';
    text += '};\n';
});
text += '\n}  // namespace\n\nstd::span<const PageFile> page_files() {\n    static const PageFile files[] = {\n';
files.forEach((file, i) => {
    const bytes = `reinterpret_cast<const char*>(page_file_${i}), sizeof page_file_${i}`;
    text += `        {"${file.path}", "${file.type}", {${bytes}}},\n`;
});
text += '    };\n    return files;\n}\n\nstd::string_view why_no_page() {\n    return {};\n}\n\n}  // namespace varve::console::serve\n';
writeFileSync(output, text);
