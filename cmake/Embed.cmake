# Writes OUT: a C file that holds FILES (paths below ROOT) as text, sorted by path. See src/base/embedded.h.
list(SORT FILES)
set(texts "")
set(rows "")
set(index 0)
foreach(path IN LISTS FILES)
  file(READ ${ROOT}/${path} text)
  file(SIZE ${ROOT}/${path} size)
  string(LENGTH "${text}" length)
  if(NOT length EQUAL size)   # CMake drops carriage returns and NUL bytes
    message(FATAL_ERROR "${path} is not plain text with Unix line ends")
  endif()
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  string(APPEND texts "static const char text_${index}[] =\n    \"${text}\";\n\n")
  file(SHA256 ${ROOT}/${path} hash)
  string(APPEND rows "    {\"${path}\", text_${index}, sizeof text_${index} - 1, \"${hash}\"},\n")
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE ${OUT} "#include \"base/embedded.h\"

#include <string.h>

${texts}const EmbeddedFile embedded_files[] = {
${rows}    {NULL, NULL, 0, NULL},
};

const EmbeddedFile *embedded_find(const char *path)
{
    for (const EmbeddedFile *file = embedded_files; file->path; file++)
        if (strcmp(file->path, path) == 0)
            return file;
    return NULL;
}
")
