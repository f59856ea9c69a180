# rollerc_add_kernel(TARGET EXPR file.te DEVICE name|file.yaml [NAME name] [DEFINES N=4096 …] [OPTIONS --math=fast …] [VERIFY])
#
# Compiles a tensor expression to NAME.cu and NAME.h (NAME: the expression's stem) in the build folder, adds the .cu to the
# sources of TARGET and the header to what it may include. Both are made again when the expression, a device file, a template
# (OPTIONS --templates DIR) or rollerc changes, and only then. With VERIFY a kernel is proven on the CPU before it is written: a
# wrong one fails the build.
function(rollerc_add_kernel target)
  cmake_parse_arguments(PARSE_ARGV 1 kernel "VERIFY" "EXPR;DEVICE;NAME" "DEFINES;OPTIONS")
  if(kernel_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rollerc_add_kernel: what is '${kernel_UNPARSED_ARGUMENTS}'?")
  endif()
  foreach(needed EXPR DEVICE)
    if(NOT kernel_${needed})
      message(FATAL_ERROR "rollerc_add_kernel(${target} …) needs ${needed}")
    endif()
  endforeach()
  if(NOT kernel_NAME)
    get_filename_component(kernel_NAME "${kernel_EXPR}" NAME_WE)
  endif()
  get_filename_component(expression "${kernel_EXPR}" ABSOLUTE)
  set(device "${kernel_DEVICE}")
  if(device MATCHES "/|\\.yaml$")   # a file, as rollerc tells it
    get_filename_component(device "${device}" ABSOLUTE)
  endif()
  list(TRANSFORM kernel_DEFINES PREPEND "-D")

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels")
  file(MAKE_DIRECTORY "${folder}")
  set(path "${folder}/${kernel_NAME}")
  # What stays the same keeps its time, so that nothing is compiled again for it; the stamp says that it is up to date.
  add_custom_command(
    OUTPUT "${path}.stamp"
    BYPRODUCTS "${path}.cu" "${path}.h"
    COMMAND Rollerc::rollerc "${expression}" --device "${device}" --name "${kernel_NAME}" ${kernel_DEFINES} ${kernel_OPTIONS}
            $<$<BOOL:${kernel_VERIFY}>:--verify> -q -o "${path}.cu" --emit "header=${path}.h" -MD -MF "${path}.d"
            -MT "${path}.stamp"
    COMMAND "${CMAKE_COMMAND}" -E touch "${path}.stamp"
    DEPENDS "${expression}" Rollerc::rollerc
    DEPFILE "${path}.d"
    COMMENT "Constructing ${kernel_NAME} for ${kernel_DEVICE}"
    COMMAND_EXPAND_LISTS VERBATIM)
  target_sources(${target} PRIVATE "${path}.stamp" "${path}.cu" "${path}.h")
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()
